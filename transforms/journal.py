"""What one journal entry is: its columns, its payload as JSON, its id made from all of them."""

import json
from collections.abc import Mapping
from datetime import datetime

from cortex.transforms.identity import content_id
from cortex.transforms.schemas import JOURNAL_KINDS, checked


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
