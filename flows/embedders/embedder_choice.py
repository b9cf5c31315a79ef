"""Which embedding model is used: the hosted one while it answers, else the local one."""

from datetime import UTC, datetime, timedelta

from cortex.flows.embedders import Embedder, embedder_for, local_or_none
from cortex.storage.model_calls.model_failure import (
    ModelFailure,
    hosted_failure,
    note_failure,
    read_failure,
)
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import ModelUnavailable

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
    """Return the hosted model; None if its library is missing, which is noted as its failure."""
    try:
        return embedder_for(settings.voyage_api_key)
    except ModelUnavailable as error:
        if settings.voyage_api_key:
            note_failure(settings.home, ModelFailure("Voyage AI", datetime.now(UTC), error.problem))
        return None
