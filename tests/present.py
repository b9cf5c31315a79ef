"""The context of what a test does: its clock and its embedding model, the store and folder of its process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from cortex.flows.context import Context, EmbedderOf, utc_now
from cortex.flows.embedders import embedder_in_force

_CLOCK: ContextVar[Callable[[], datetime]] = ContextVar("clock", default=utc_now)
_EMBEDDER_OF: ContextVar[EmbedderOf] = ContextVar("embedder_of", default=embedder_in_force)


@contextmanager
def clock_at(instant: datetime) -> Iterator[None]:
    """Let `instant` be the present in the block."""
    token = _CLOCK.set(lambda: instant)
    try:
        yield
    finally:
        _CLOCK.reset(token)


@contextmanager
def embedding_with(embedder_of: EmbedderOf) -> Iterator[None]:
    """Let the model that `embedder_of` gives be the one in use in the block."""
    token = _EMBEDDER_OF.set(embedder_of)
    try:
        yield
    finally:
        _EMBEDDER_OF.reset(token)


def present(clock: Callable[[], datetime] | None = None) -> Context:
    """Return the context that the test has set; to be given to the command line as `obj`."""
    return Context(embedder_of=_EMBEDDER_OF.get(), clock=clock or _CLOCK.get())
