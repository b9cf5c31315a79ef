"""Which embedding model is used: the hosted one while it answers, else the local one with its vectors."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cortex.flows.embedders import Embedder, embedder_for, local_or_none
from cortex.flows.spare_vectors import SpareVectors
from cortex.storage.model_failure import ModelFailure, hosted_failure, note_failure, read_failure
from cortex.storage.settings import Settings
from cortex.storage.store import Store
from cortex.storage.tables import Searchable
from cortex.transforms.errors import ModelUnavailable, StoreNotWritable
from cortex.transforms.schemas import VECTORS

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.flows.embedders import Vectors

# A service that failed is not waited for by each command that follows: its three tries of 20 s take a minute.
RETRIED_AFTER = timedelta(minutes=10)


def embedder_in_force(settings: Settings) -> Embedder | None:
    """
    Return the embedding model to use, or None when there is none: keyword search goes on without.

    With a key that is the hosted one, unless it failed and has not answered a run since.
    """
    is_trusted = bool(settings.voyage_api_key) and read_failure(settings.home) is None
    return (hosted_or_none(settings) if is_trusted else None) or local_or_none()


def hosted_again(settings: Settings, now: datetime) -> Embedder | None:
    """Return the hosted model where it failed long enough ago to be tried again."""
    failure = hosted_failure(settings)
    is_due = failure is not None and now - failure.failed_at >= RETRIED_AFTER
    return hosted_or_none(settings) if is_due else None


def hosted_or_none(settings: Settings) -> Embedder | None:
    """Return the hosted model; None where its library is missing, which is noted as its failure."""
    try:
        return embedder_for(settings.voyage_api_key)
    except ModelUnavailable as error:
        if settings.voyage_api_key:
            note_failure(settings.home, ModelFailure("Voyage AI", datetime.now(UTC), error.problem))
        return None


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
    question: str, context: "Context", store: Store, tables: Searchable
) -> tuple[Embedder | None, Searchable]:
    """
    Return the model that embeds a question, and the tables with vectors to compare its answer with.

    Where the model in force is hosted and does not answer, that is noted, so that the next question does not
    wait for it, and the local model and its vectors take its place.
    """
    embedder = context.embedder()
    if embedder is None or not context.settings.voyage_api_key or not question.strip():
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
                note_failure(store.home, ModelFailure(embedder.model, context.now, error.problem))
    return spare, SpareVectors(tables, lambda: store.lake.read(VECTORS, spare.model), spare.dimensions)
