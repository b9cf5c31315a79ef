"""The notes that a hosted model gives no answer, each kept until it answers a run again."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cortex.hooks import health
from cortex.storage.filesystem.files import write_stored, writing_to
from cortex.storage.settings.settings import Settings

EMBEDDER = "runs/embedder.json"
WRITER = health.WRITER_NOTE


@dataclass(frozen=True)
class ModelFailure:
    """
    Which model gave no answer, when, and what kind of failure it was; never what the service said.

    Until `until` it would give none: the limit of a plan is reset then.
    """

    model: str
    failed_at: datetime
    reason: str
    until: datetime | None = None


def read_failure(home: Path, path: str = EMBEDDER) -> ModelFailure | None:
    """Return the failure noted last; None if there is none, or its note cannot be read."""
    try:
        note = json.loads((home / path).read_bytes())
        until = note.get("until")
        return ModelFailure(
            note["model"],
            datetime.fromisoformat(note["failed_at"]),
            str(note["reason"]),
            datetime.fromisoformat(until) if until else None,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def note_failure(home: Path, failure: ModelFailure, path: str = EMBEDDER) -> None:
    """Note a failure in the place of an earlier one. Raises StoreNotWritable."""
    note = {
        "model": failure.model,
        "failed_at": failure.failed_at.isoformat(),
        "reason": failure.reason,
        "until": failure.until.isoformat() if failure.until else None,
    }
    write_stored(home, home / path, json.dumps(note).encode())


def clear_failure(home: Path, path: str = EMBEDDER) -> None:
    """Forget the failure: the model answers."""
    with suppress(FileNotFoundError), writing_to(home):
        (home / path).unlink()


def hosted_failure(settings: Settings) -> ModelFailure | None:
    """Return the failure of the hosted embedding model; None if it answered last, or without a key."""
    return read_failure(settings.home) if settings.voyage_api_key else None
