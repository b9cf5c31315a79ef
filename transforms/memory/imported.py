"""A memory as an import puts it back, alone or together with what was said here of the same fact."""

import json
from dataclasses import fields
from datetime import datetime

import pyarrow as pa

from cortex.transforms.journal_entries import ImportMemory
from cortex.transforms.schemas import EPOCH, MEMORIES, TRUSTS, Row

INSTANTS = frozenset(field.name for field in MEMORIES.arrow if pa.types.is_timestamp(field.type))
_CARRIED = tuple(field.name for field in fields(ImportMemory) if field.name in MEMORIES.arrow.names)


def import_of(memory: Row) -> ImportMemory:
    """Return the journal entry that puts an undecayed memory back as it is."""
    carried = {**{name: memory[name] for name in _CARRIED}, "pinned": memory["is_pinned"]}
    plain = json.dumps(carried, ensure_ascii=False, default=lambda instant: instant.isoformat())
    return ImportMemory(**json.loads(plain))


def put_back(row: Row, entry: ImportMemory) -> Row:
    """Return the undecayed memory that an own export carried, with every date as it was."""
    memory = {
        "memory_id": row["memory_id"],
        "project_id": row["project_id"],
        "is_pinned": entry.pinned,
        **{name: getattr(entry, name) for name in _CARRIED},
    }
    for name in INSTANTS & memory.keys():
        memory[name] = _instant(memory[name])
    memory["evidence"] = [{**place, "said_at": _instant(place["said_at"])} for place in entry.evidence]
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
