"""What time and use do to memories and events: decay, archiving, centrality, rank and tiers, in bulk SQL."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.database import query
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import values

FADE_THRESHOLDS = (
    "half_life_growth",
    "frequent_access_count",
    "central_above_centrality",
    "archive_below_confidence",
    "archive_grace_days",
    "prune_after_days",
)
RANK_THRESHOLDS = (
    "rank_weight_confidence",
    "rank_weight_priority",
    "rank_weight_centrality",
    "rank_weight_access",
    "priority_max",
)
TIER_THRESHOLDS = (
    "immortal_full_sessions",
    "immortal_short_sessions",
    "immortal_full_max",
    "immortal_short_max",
)
TIER_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "status", "is_pinned", "rank"),
    *("updated_at", "last_accessed_at"),
]
# What the queries read; the texts and the evidence of a million memories need not pass through DuckDB.
LIFECYCLE_COLUMNS = [
    "memory_id",
    "project_id",
    "memory_type",
    "status",
    "is_pinned",
    "priority",
    "initial_confidence",
    "access_count",
    "last_accessed_at",
    "updated_at",
    "archived_at",
    "merged_into",
]


def age(memories: pa.Table, edges: pa.Table, policy: Policy, now: datetime) -> pa.Table:
    """
    Return `memories` with confidence, status, archived_at, centrality and rank as they are at `now`.

    Takes MEMORIES as the fold made them (those the journal archived, superseded or pruned marked) and EDGES;
    returns MEMORIES ordered by memory_id. Ageing what was aged at the same `now` changes nothing. The result
    follows the instant: a caller that wants a second run of the day to change nothing passes the start of the
    UTC day. `now` must be timezone-aware. Memories that decay archives get the instant it happened as
    archived_at, whenever the run was; those that fold archived stay so, and none but merged, pinned or
    superseded ones outlive the days to pruning. Removing a pruned memory's text is left to storage.
    """
    ordered = _ordered(memories)
    narrow = ordered.select(LIFECYCLE_COLUMNS)
    central = query(
        "centrality",
        {},
        memories=narrow.select(["memory_id", "project_id"]),
        edges=edges.select(["source_id", "target_id", "edge_type"]),
        edge_types=policy.tables["edge_types"],
    )
    narrow = narrow.append_column("centrality", central["centrality"])
    faded = query(
        "lifecycle",
        {"now": now, **_thresholds(policy, FADE_THRESHOLDS)},
        memories=narrow,
        memory_types=policy.tables["memory_types"],
    )
    ranked = query(
        "rank",
        _thresholds(policy, RANK_THRESHOLDS),
        memories=narrow.append_column("confidence", faded["confidence"]),
    )
    made = {
        "confidence": faded["confidence"],
        "status": faded["status"],
        "archived_at": faded["archived_at"],
        "centrality": central["centrality"],
        "rank": ranked["rank"],
    }
    return _replaced(ordered, made)


def event_salience(events: pa.Table, accesses: pa.Table, policy: Policy, now: datetime) -> pa.Table:
    """
    Return what each event is worth at `now`: (event_id, salience), ordered by event_id.

    Takes EVENTS and accesses (event_id, accessed_at), one row per recall of something resting on the event.
    Salience is a fraction; every access raises it by a fifth up to 1, and it fades from the last one.
    """
    return query(
        "event_salience",
        {"now": now, **_thresholds(policy, ("salience_kept_per_hour", "salience_access_factor"))},
        events=events.select(["event_id", "event_type", "salience", "said_at"]),
        accesses=accesses,
        event_types=policy.tables["event_types"],
    )


def immortal_tiers(memories: pa.Table, sessions: pa.Table, policy: Policy) -> pa.Table:
    """
    Return how much room each active memory gets: (memory_id, sessions_since, tier), ordered by memory_id.

    Takes aged MEMORIES (of them TIER_COLUMNS) and sessions as `sessions_of` gives them. `sessions_since` are
    those begun after it was last said or recalled; `tier` is full, short or archive for a decision, else
    null.
    """
    return query(
        "immortal_tier",
        _thresholds(policy, TIER_THRESHOLDS),
        memories=memories.select(TIER_COLUMNS),
        sessions=sessions.select(["project_id", "session_id", "started_at"]),
        event_types=policy.tables["event_types"],
    )


def sessions_of(turns: pa.Table, merged: Mapping[str, str]) -> pa.Table:
    """
    Return when each session of TURNS began and ended: (project_id, session_id, started_at, ended_at).

    `merged` gives the project that another was merged into; undated turns tell nothing.
    """
    dated = turns.filter(pc.is_valid(turns["said_at"]))
    projects = [merged.get(name, name) for name in values(dated, "project_id")]
    rows = dated.set_column(
        dated.schema.get_field_index("project_id"), "project_id", pa.array(projects, pa.string())
    )
    spans = rows.group_by(["project_id", "session_id"]).aggregate([("said_at", "min"), ("said_at", "max")])
    named = spans.rename_columns(["project_id", "session_id", "started_at", "ended_at"])
    return named.sort_by([("project_id", "ascending"), ("session_id", "ascending")])


def _thresholds(policy: Policy, names: tuple[str, ...]) -> dict[str, object]:
    return {name: policy.threshold(name) for name in names}


def _ordered(memories: pa.Table) -> pa.Table:
    ids = memories["memory_id"]
    if len(ids) < 2 or pc.all(pc.less_equal(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py():
        return memories
    return memories.sort_by("memory_id")


def _replaced(memories: pa.Table, made: dict[str, "pa.ChunkedArray[Any]"]) -> pa.Table:
    for name, column in made.items():
        position = memories.schema.get_field_index(name)
        field = memories.schema.field(name)
        memories = memories.set_column(position, field, column.cast(field.type))
    return memories
