"""A memory as an import puts it back, alone or together with what was said here of the same fact."""

from datetime import datetime
from typing import Any

import pyarrow as pa

from cortex.transforms.schemas import EPOCH, MEMORIES, TRUSTS

Row = dict[str, Any]

INSTANTS = frozenset(field.name for field in MEMORIES.arrow if pa.types.is_timestamp(field.type))


def is_whole(payload: Row) -> bool:
    """Return whether an import's payload holds a whole memory, as an own export gives, or a fact alone."""
    return "initial_confidence" in payload


def put_back(entry: Row, payload: Row) -> Row:
    """Return the undecayed memory that an own export carried, with every date as it was."""
    memory = {
        "memory_id": entry["memory_id"],
        "project_id": entry["project_id"],
        "is_pinned": payload["pinned"],
        **{name: payload[name] for name in MEMORIES.arrow.names if name in payload},
    }
    for name in INSTANTS & payload.keys():
        memory[name] = _instant(payload[name])
    memory["evidence"] = [{**place, "said_at": _instant(place["said_at"])} for place in payload["evidence"]]
    return memory


def joined_with(known: Row, imported: Row) -> Row:
    """
    Return one memory of what was said here (`known`) and what was imported, both undecayed.

    The better trusted one words it, and only sources of that trust date it, pin it and make it sure; the
    evidence is that of both.
    """
    best = max(imported, known, key=lambda m: TRUSTS.index(m["trust"]))
    believed = [m for m in (imported, known) if m["trust"] == best["trust"]]
    evidence = {place["turn_id"]: place for place in [*known["evidence"], *imported["evidence"]]}.values()
    return {
        **known,
        **imported,
        **{name: best.get(name) for name in ("text", "reason", "rejected", "trust", "source_type")},
        "files": sorted({path for m in believed for path in m["files"]}),
        "is_pinned": any(m["is_pinned"] for m in believed),
        "initial_confidence": max(m["initial_confidence"] for m in believed),
        "salience": max(m["salience"] for m in believed),
        "created_at": min(m["created_at"] or EPOCH for m in believed),
        "updated_at": max(m["updated_at"] or EPOCH for m in believed),
        "evidence": sorted(evidence, key=lambda e: (e["said_at"] or EPOCH, e["turn_id"]), reverse=True),
    }


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
