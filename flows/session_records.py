"""The records of sessions as results: for "what did we do last week", "where did we stop", "what is open"."""

from collections.abc import Sequence
from datetime import datetime

from cortex.flows.recall_hits import HIDDEN_STATUSES
from cortex.flows.recall_results import Evidence, RecallResult
from cortex.storage.tables import Searchable
from cortex.transforms.extract.outcome import outcome_parts
from cortex.transforms.memory.authors import speaker_of
from cortex.transforms.schemas import EPOCH, Row
from cortex.transforms.search.limits import SearchLimits


def session_records(
    tables: Searchable, scopes: Sequence[str], limits: SearchLimits, *, limit: int, only_open: bool
) -> list[RecallResult]:
    """
    Return at most `limit` outcome records of sessions within the limits, the newest first.

    With `only_open` those that name something open.
    """
    memories = tables.open_index(scopes, "memories").read(where={"memory_type": ["outcome"]})
    rows: list[Row] = limits.memories(memories).to_pylist()
    shown = [
        row
        for row in rows
        if row["status"] not in HIDDEN_STATUSES and row["merged_into"] is None and row["trust"] != "external"
    ]
    if only_open:
        shown = [row for row in shown if outcome_parts(row["text"]).get("open")]
    shown.sort(key=lambda row: (-_instant(row).timestamp(), row["memory_id"]))
    return [_result(row) for row in shown[:limit]]


def _instant(row: Row) -> datetime:
    instant: datetime = row["updated_at"] or EPOCH
    return instant


def _result(row: Row) -> RecallResult:
    return RecallResult(
        id=row["memory_id"],
        kind="memory",
        memory_type=row["memory_type"],
        text=row["text"],
        project_id=row["project_id"],
        score=_instant(row).timestamp(),
        confidence=row["confidence"],
        created_at=row["updated_at"],
        evidence=tuple(
            Evidence(item["session_id"], item["file"], tuple(item["lines"]), item["said_at"])
            for item in row["evidence"] or ()
        ),
        trust=row["trust"],
        speaker=speaker_of(row),
        status=row["status"],
        passage=None,
        statement=row["text"],
    )
