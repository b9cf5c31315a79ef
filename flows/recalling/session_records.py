"""The records of sessions as results: for "what did we do last week", "where did we stop", "what is open"."""

from collections.abc import Sequence

from cortex.flows.recalling.recall_results import Evidence, RecallResult, instant_of
from cortex.hooks.evidence.search import outcome_records
from cortex.storage.tables.tables import Searchable
from cortex.transforms.memory.authors import speaker_of
from cortex.transforms.schemas import Row
from cortex.transforms.search.limits import SearchLimits


def session_records(
    tables: Searchable, scopes: Sequence[str], limits: SearchLimits, *, limit: int, only_open: bool
) -> list[RecallResult]:
    """
    Return at most `limit` outcome records of sessions within the limits, the newest first.

    With `only_open` those that name something open.
    """
    admits = None if limits.is_empty else limits.admits
    with tables.reading_index(scopes) as connection:
        rows = outcome_records(connection, scopes, limit=limit, only_open=only_open, admits=admits)
    return [_result(row) for row in rows]


def _result(row: Row) -> RecallResult:
    return RecallResult(
        id=row["memory_id"],
        kind="memory",
        memory_type=row["memory_type"],
        text=row["text"],
        project_id=row["project_id"],
        score=(row["updated_at"] or 0) / 1e6,
        confidence=row["confidence"],
        created_at=instant_of(row["updated_at"]),
        evidence=tuple(
            Evidence(item["session_id"], item["file"], tuple(item["lines"]), instant_of(item["said_at"]))
            for item in row["evidence"] or ()
        ),
        trust=row["trust"],
        speaker=speaker_of(row),
        status=row["status"],
        passage=None,
        statement=row["text"],
    )
