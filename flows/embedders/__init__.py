"""Embedding models behind one small protocol: the hosted one while it answers, else the local one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from cortex.transforms.errors import ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cortex.storage.model_failure import ModelFailure, clear_failure, note_failure, read_failure
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import StoreNotWritable

if TYPE_CHECKING:
    from cortex.flows.embedders import Vectors


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


# -- Which embedding model is used, and what it gave no vectors for.

# -- The embedding model of a run, and what it gave no vectors for.

# Joins the model in fingerprints of what was made while vectors were missing: with them it is made again.
INCOMPLETE = ", incomplete"


@dataclass
class Embedding:
    """Which model embeds in this run, if any, and the scopes of which memories lack its vectors."""

    embedder: Embedder | None = None
    is_asked: bool = True  # off in a look at what there is: nothing is embedded then
    incomplete: set[str] = field(default_factory=set)
    is_unanswered: bool = False  # the model gave no answer: words alone find what has no vector

    @property
    def model(self) -> str:
        """The model's name, empty when there is none."""
        return self.embedder.model if self.embedder else ""

    @property
    def asked(self) -> Embedder | None:
        """The model to ask for vectors; None if nothing is embedded."""
        return self.embedder if self.is_asked else None

    def basis(self, scope: str) -> str:
        """Return what a scope's edges and memories follow from: the model, and whether vectors lack."""
        return self.model + (INCOMPLETE if scope in self.incomplete else "")


# -- Which embedding model is used: the hosted one with a key, else the local one.

# A service that failed is not waited for by each command that follows: its three tries of 20 s take a minute.
RETRIED_AFTER = timedelta(minutes=10)


class HostedEmbedder:
    """A hosted model that is left alone for a while after it gave no answer; a note in the store says so."""

    def __init__(self, embedder: Embedder, home: Path) -> None:
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._embedder, self._home = embedder, home

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> "Vectors":
        """Return what the model gives. Raises ModelUnavailable, at once if it failed a short while ago."""
        failure, now = read_failure(self._home), datetime.now(UTC)
        if failure and timedelta() <= now - failure.failed_at < RETRIED_AFTER:
            raise ModelUnavailable(failure.reason, "It is asked again after ten minutes.")
        try:
            vectors = self._embedder.embed(texts, as_query=as_query)
        except ModelUnavailable as error:
            with suppress(StoreNotWritable):
                note_failure(self._home, ModelFailure(self.model, now, error.problem))
            raise
        if failure:
            with suppress(StoreNotWritable):
                clear_failure(self._home)
        return vectors


def embedder_in_force(settings: Settings) -> Embedder | None:
    """
    Return the embedding model to use, or None when there is none: keyword search goes on without.

    With a key and its library that is the hosted one, whether it answers now or not; else the local one,
    unless it is switched off.
    """
    if settings.voyage_api_key:
        with suppress(ModelUnavailable):  # `cortex doctor` says that the library is missing
            return HostedEmbedder(embedder_for(settings.voyage_api_key), settings.home)
    return local_or_none() if settings.embeds_locally else None
