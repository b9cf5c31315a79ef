"""Imports the protocol's package at less cost: most of the time to start goes into it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """
    Import in the block without looking for garbage; models of pydantic are built when they are first used.

    The package describes three generations of the protocol in about 400 models, of which a session uses
    a few; what a model accepts does not depend on when it is built. Call it before the package is imported.
    """
    from pydantic import BaseModel

    usual = BaseModel.model_config
    was_enabled = gc.isenabled()
    gc.disable()
    BaseModel.model_config = {**usual, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = usual
        gc.freeze()  # what was imported stays: looking through it again and again finds nothing
        if was_enabled:
            gc.enable()
