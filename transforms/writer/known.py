"""The memories that a request about a session may name: what a person or a language model wrote before it."""

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.schemas import EPOCH, TRUSTS, Row
from cortex.transforms.writer.session import KnownMemory
from cortex.transforms.writer.written import LAYER_PREFIX

KNOWN_COLUMNS = [
    "memory_id",
    "memory_type",
    "text",
    "source_type",
    "trust",
    "created_at",
    "recorded_at",
    "evidence",
]


def known_memories(
    memories: pa.Table,
    session_id: str,
    ended_at: datetime,
    read_at: Mapping[str, datetime],
    as_of: datetime | None = None,
) -> list[KnownMemory]:
    """
    Return which of a project's MEMORIES a request about a session that ended at `ended_at` may name.

    They are active, older than its end, and a person remembered or edited them or a language model wrote them
    about another session: read again, a session would otherwise find all of its own facts known. Outcome
    records and what strangers said are not among them. `as_of` leaves out what came later than that moment:
    entries by when they were noted, a model's facts by `read_at`, the moment of each session's first reply.
    """
    is_told = (pc.field("status") == "active") & (pc.field("memory_type") != "outcome")
    rows = memories.filter(is_told & (pc.field("trust") != TRUSTS[0])).select(KNOWN_COLUMNS).to_pylist()
    return [
        KnownMemory(row["memory_id"], row["text"])
        for row in rows
        if row["created_at"] <= ended_at and _is_written(row, session_id, read_at, as_of)
    ]


def moments(memories: pa.Table, read_at: Mapping[str, datetime]) -> list[datetime]:
    """Return when what may be named has changed, the latest first: each is a value of `as_of`."""
    explicit = memories.filter(pc.field("source_type") == "explicit")["recorded_at"].to_pylist()
    return sorted({*read_at.values(), *(at for at in explicit if at)}, reverse=True)


def _is_written(row: Row, session_id: str, read_at: Mapping[str, datetime], as_of: datetime | None) -> bool:
    if row["source_type"] == "explicit":
        return as_of is None or (row["recorded_at"] or EPOCH) < as_of
    others = {
        place["session_id"]
        for place in row["evidence"]
        if place["layer"].startswith(LAYER_PREFIX) and place["session_id"] != session_id
    }
    return any(as_of is None or read_at.get(name, EPOCH) < as_of for name in others)
