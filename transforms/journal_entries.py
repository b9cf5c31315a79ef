"""What one journal entry is: its columns, its payload as JSON, its id made from all of them."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cortex.transforms.identity import content_id
from cortex.transforms.schemas import CATEGORIES, JOURNAL, JOURNAL_KINDS, MEMORY_TYPES, checked

# What the payload of a kind must have for a fold to read it, and what it may have.
_FACT = {"text": str, "memory_type": str, "category": str}
_REQUIRED: Mapping[str, Mapping[str, type]] = {
    "remember": _FACT,
    "import": _FACT,
    "edit": {"text": str},
    "supersede": {"by": str},
    "merge": {"text": str, "members": list},
    "recall": {"memory_ids": list},
    "dismiss": {"memory_ids": list},
}
_LISTS = ("members", "memory_ids", "tags", "files", "turn_ids", "session_ids")
_CLOSED = {"memory_type": MEMORY_TYPES, "category": CATEGORIES}


def entry(
    kind: str,
    project_id: str,
    payload: Mapping[str, object],
    *,
    recorded_at: datetime,
    memory_id: str | None = None,
    actor: str = "user",
) -> dict[str, object]:
    """Return one JOURNAL row; its id is made from all the rest. Raises UnknownValue on another kind."""
    checked("journal kind", kind, JOURNAL_KINDS)
    told = json.dumps(payload, ensure_ascii=False, sort_keys=True)
    identity = (recorded_at.isoformat(), kind, project_id, memory_id or "", actor, told)
    return {
        "entry_id": content_id(*identity),
        "recorded_at": recorded_at,
        "kind": kind,
        "project_id": project_id,
        "memory_id": memory_id,
        "actor": actor,
        "payload": told,
    }


def entry_in(content: bytes) -> dict[str, Any]:
    """
    Return the JOURNAL row that a waiting file holds. Raises ValueError or TypeError for anything else.

    A fold reads every entry, so one of another shape would stop its scope for ever.
    """
    row = json.loads(content)
    if not isinstance(row, dict) or set(row) != set(JOURNAL.arrow.names):
        raise ValueError("not the columns of an entry")
    for name, value in row.items():
        if not isinstance(value, str) and not (name == "memory_id" and value is None):
            raise TypeError(name)
        (value or "").encode()  # half a surrogate pair cannot be stored
    checked("journal kind", row["kind"], JOURNAL_KINDS)
    _check_payload(row["kind"], json.loads(row["payload"]))
    identity = (row["recorded_at"], row["kind"], row["project_id"], row["memory_id"] or "", row["actor"])
    if row["entry_id"] != content_id(*identity, row["payload"]):
        raise ValueError("its id is that of another entry")
    at = datetime.fromisoformat(row["recorded_at"])
    if at.tzinfo is None:
        raise ValueError("its time has no zone")
    return {**row, "recorded_at": at}


def _check_payload(kind: str, payload: object) -> None:
    if not isinstance(payload, dict):
        raise TypeError("payload")
    for name, expected in _REQUIRED.get(kind, {}).items():
        if not isinstance(payload.get(name), expected):
            raise TypeError(name)
    for name in _LISTS:
        items = payload.get(name, [])
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise TypeError(name)
    for name, allowed in _CLOSED.items():
        if name in payload:
            checked(name, payload[name], allowed)
