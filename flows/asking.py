"""Which model answers a question: the hosted one while it answers, else the local one with its vectors."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from cortex.flows.embedders import Embedder, local_or_none
from cortex.flows.recall import Tables
from cortex.flows.spare_vectors import SpareVectors
from cortex.storage.model_failure import ModelFailure, note_failure
from cortex.storage.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.errors import ModelUnavailable, StoreNotWritable
from cortex.transforms.schemas import VECTORS

if TYPE_CHECKING:
    from cortex.flows.embedders import Vectors


class Answered:
    """A model that has embedded one question; it is not asked for it again."""

    def __init__(self, embedder: Embedder, question: str) -> None:
        """Ask `embedder` for the question's vector. Raises ModelUnavailable."""
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._vectors = embedder.embed([question], as_query=True)

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> "Vectors":
        """Return the question's vector."""
        return self._vectors


def model_for(
    question: str, embedder: Embedder | None, settings: Settings, store: Store, tables: Tables, now: datetime
) -> tuple[Embedder | None, Tables]:
    """
    Return the model that embeds a question, and the tables with vectors to compare its answer with.

    `embedder` is the one in force. Where it is hosted and does not answer, that is noted, so that the next
    question does not wait for it, and the local model and its vectors take its place.
    """
    if embedder is None or not settings.voyage_api_key or not question.strip():
        return embedder, tables
    spare = local_or_none()
    if spare is None:
        return embedder, tables
    # Between a new key and the first run with it there is nothing to compare the hosted vector with.
    if embedder.model != spare.model and embedder.model in store.lake.manifest.partitions("vectors"):
        try:
            return Answered(embedder, question), tables
        except ModelUnavailable as error:
            with suppress(StoreNotWritable):
                note_failure(store.home, ModelFailure(embedder.model, now, error.problem))
    return spare, SpareVectors(tables, lambda: store.lake.read(VECTORS, spare.model), spare.dimensions)
