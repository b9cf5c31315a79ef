"""What goes by its age and type: the wishes to forget that follow from the rules of retention."""

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa

from cortex.flows.run.run import Run
from cortex.transforms.journal_entries import Forget
from cortex.transforms.memory.merged_projects import own_names
from cortex.transforms.schemas import GLOBAL_SCOPE, JOURNAL, Row

RETENTION_ACTOR = "retention"


def expired_requests(run: Run, journal: pa.Table) -> pa.Table:
    """
    Return the wishes (JOURNAL) to forget memories whose type is past its days in their project.

    What a person pinned, edited or told Cortex stays, and so does what colleagues hold; a merged memory goes
    as a whole, by the day on which any part of it was last said.
    """
    held = {row["memory_id"] for row in journal.to_pylist() if row["kind"] in ("edit", "remember", "forget")}
    rows: list[Row] = []
    for scope in run.readings.scopes():
        by_type = run.retention.of("" if scope == GLOBAL_SCOPE else scope).by_type
        if not by_type:
            continue
        held_here = held | {
            row["memory_id"]
            for row in run.readings.merged_journal(scope).to_pylist()
            if row["kind"] in ("edit", "remember")
        }
        for memory in run.readings.memories(scope).to_pylist():
            since = by_type.get(memory["memory_type"])
            if since is not None and memory["memory_id"] not in held_here and _is_expired(memory, since):
                rows += _requests(run, scope, memory)
    return JOURNAL.of(rows)


def _is_expired(memory: Row, since: datetime) -> bool:
    is_kept = memory["is_pinned"] or memory["source_type"] in ("explicit", "team")
    return not is_kept and memory["merged_into"] is None and memory["updated_at"] < since


def _requests(run: Run, scope: str, memory: Row) -> Iterator[Row]:
    """Yield the wish under each name that the memory has, as for one that a person forgets."""
    entry = Forget(turn_ids=sorted({place["turn_id"] for place in memory["evidence"]}))
    events, journal = run.readings.events(scope), run.readings.journal(scope)
    names = own_names(events, journal, run.policy, scope, memory["memory_id"])
    for project_id, name in (*names, (scope, memory["memory_id"])):
        yield entry.to_row(project_id, recorded_at=run.now, memory_id=name, actor=RETENTION_ACTOR)
