"""What was known at an earlier instant: rows of the lake that count then (spec 8.5, decision 0029)."""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.journal_entries import Forget, ImportFact, ImportMemory, TeamFact, from_row
from cortex.transforms.schemas import JOURNAL, Row


def rows_until(rows: pa.Table, until: datetime) -> pa.Table:
    """
    Return the TURNS or EVENTS said before `until`; what nobody dated counts as old.

    When a transcript was read does not matter: a backfill tells today what was true last month.
    """
    return rows.filter(pc.field("said_at").is_null() | (pc.field("said_at") < pa.scalar(until)))


def journal_until(journal: pa.Table, until: datetime) -> pa.Table:
    """
    Return the JOURNAL entries that count at `until`: those recorded before it, and every wish to forget.

    Forgetting reaches back, else looking at last week would show what was erased since. What was imported
    later counts from the day that its own tool noted it.
    """
    kept = (_as_known(row, until) for row in journal.to_pylist())
    return JOURNAL.of([row for row in kept if row is not None])


def _as_known(row: Row, until: datetime) -> Row | None:
    if row["recorded_at"] < until:
        return row
    match from_row(row):
        case Forget(pruned=None):
            return row
        case ImportFact(created_at=str(text)) | ImportMemory(created_at=text) | TeamFact(said_at=str(text)):
            created_at = datetime.fromisoformat(text)
            return {**row, "recorded_at": created_at} if created_at < until else None
    return None
