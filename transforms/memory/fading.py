"""Since when memories are known to be weak: what runs found and journaled, never reckoned back (spec 8.2)."""

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.journal_entries import Fade, Recover, entries_in
from cortex.transforms.memory.lifecycle import Aged
from cortex.transforms.schemas import JOURNAL, UTC_US, arrow_of, column, values

WEAK = arrow_of(
    [
        column("memory_id", pa.string(), "memory that was found weak"),
        column("weak_since", UTC_US, "when a run found it so"),
    ]
)


def known_weak(journal: pa.Table) -> pa.Table:
    """
    Return the memories that were found weak and not strong again: (memory_id, weak_since), by memory_id.

    Takes JOURNAL rows of one scope. `weak_since` is the instant of the run that found it (last).
    """
    notes: list[tuple[dict[str, Any], Fade | Recover]] = [
        *entries_in(journal, Fade),
        *entries_in(journal, Recover),
    ]
    since: dict[str, datetime] = {}
    for row, entry in sorted(notes, key=lambda note: (note[0]["recorded_at"], note[0]["kind"])):
        for name in entry.memory_ids:
            if isinstance(entry, Fade):
                since[name] = row["recorded_at"]
            else:
                since.pop(name, None)
    rows: list[dict[str, Any]] = [{"memory_id": name, "weak_since": at} for name, at in sorted(since.items())]
    return pa.Table.from_pylist(rows, schema=WEAK)


def findings(aged: Aged, weak: pa.Table, scope: str, now: datetime) -> pa.Table:
    """
    Return the JOURNAL rows that note which memories of a scope were found weak, or strong again, at `now`.

    Takes what `known_weak` gave before. What is known already is not noted again: without news, no rows.
    """
    marks, status = aged.marks, aged.memories["status"]
    known = pc.is_in(marks["memory_id"], weak["memory_id"].combine_chunks())
    faded = marks.filter(pc.and_(marks["is_weak"], pc.is_null(marks["weak_since"])))
    is_there = pc.is_in(status, pa.array(["active", "archived"]))
    strong = marks.filter(pc.and_(pc.and_(known, is_there), pc.invert(marks["is_weak"])))
    news = (Fade(values(faded, "memory_id")), Recover(values(strong, "memory_id")))
    return JOURNAL.of(
        [entry.to_row(scope, recorded_at=now, actor="decay") for entry in news if entry.memory_ids]
    )
