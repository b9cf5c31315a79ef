"""Providers of embeddings, each behind the same small protocol."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from cortex.transforms.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """What turns prose into vectors; raw code is never given to one (spec 6.1)."""

    @property
    def model(self) -> str:
        """Name of the model; a vector is only comparable with vectors of the same name."""

    @property
    def dimensions(self) -> int:
        """Length of each vector."""

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> "Vectors":
        """
        Return one unit-length float32 row per text, in the order given.

        `as_query` says that the texts are questions and not the prose that answers them: some models
        embed the two differently. Raises ModelUnavailable if the model cannot answer now.
        """


def embedder_for(voyage_key: str | None = None) -> Embedder:
    """
    Return the hosted embedder when a key is given, otherwise the local model (spec 6.1).

    Raises ModelUnavailable, with a next step, if the one chosen is not installed or not the one expected:
    the caller goes on with keyword search.
    """
    # Imported here: the two libraries take 130 and 620 ms, and `cortex --help` needs neither.
    if voyage_key:
        from cortex.flows.embedders.voyage import connect

        return connect(voyage_key)
    from cortex.flows.embedders.local import load

    return load()


def local_or_none() -> Embedder | None:
    """Return the local model; None if it is not installed or not the one expected."""
    try:
        return embedder_for()
    except ModelUnavailable:
        return None
