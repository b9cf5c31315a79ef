"""Pruning: a tombstone for each memory that was archived too long; the lake keeps its words (spec 8.2)."""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage
from cortex.transforms.journal_entries import Prune
from cortex.transforms.schemas import JOURNAL, Row


@stage(reads="turns events journal edges memories", writes="journal")
def retire(run: Run) -> None:
    """
    Journal a tombstone for each memory that was archived too long; its words stay in the lake.

    A few a day and scope, those archived first: what came together in a backfill would fade together, and a
    night must not hide more than a small share of what was shown.
    """
    with run.report.stage("retire") as row:
        run.store.journal.take_in()
        rows: list[Row] = []
        for scope in run.readings.scopes():
            with run.outcome.apart(scope, "retire"):
                rows += _due(run, scope)
        row.rows_out = len(rows)
        if rows:
            run.store.journal.commit(JOURNAL.of([_tombstone(memory, run.now) for memory in rows]))


def _due(run: Run, scope: str) -> list[Row]:
    """Return the memories of a scope whose turn it is to be pruned today."""
    table = run.store.tables.open(scope, "memories")
    # As of the last decay: nothing archived there, nothing to look at closer.
    if not table.read(["memory_id"], {"status": ["archived"], "merged_into": [None]}).num_rows:
        return []
    aged = run.readings.aged(scope, run.day)
    due = aged.memories.filter(aged.marks["is_due"]).sort_by(
        [("archived_at", "ascending"), ("memory_id", "ascending")]
    )
    return due.slice(0, max(0, _at_most(run, aged.memories) - _pruned_today(run, scope))).to_pylist()


def _at_most(run: Run, memories: pa.Table) -> int:
    shown = memories.filter(pc.is_in(memories["status"], pa.array(["active", "archived"]))).num_rows
    return max(1, int(run.policy.threshold("prune_share_per_day") * shown))


def _pruned_today(run: Run, scope: str) -> int:
    journal = run.readings.journal(scope)
    is_todays = (pc.field("kind") == "prune") & (pc.field("recorded_at") >= pa.scalar(run.day))
    return journal.filter(is_todays).num_rows


def _tombstone(memory: Row, now: datetime) -> dict[str, object]:
    tombstone = Prune(
        memory["memory_type"],
        memory["source_type"],
        memory["trust"],
        created_at=memory["created_at"].isoformat(),
        updated_at=memory["updated_at"].isoformat(),
    )
    return tombstone.to_row(
        memory["project_id"], recorded_at=now, memory_id=memory["memory_id"], actor="decay"
    )
