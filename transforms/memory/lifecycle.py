"""What time and use do to memories: decay, archiving, rank in bulk SQL; since when weak, until when valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.database import query
from cortex.transforms.journal_entries import ActiveDays, Fade, Recover, entries_in
from cortex.transforms.memory.team import is_team_held
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL, UTC_US, arrow_of, as_polars, column, values

if TYPE_CHECKING:
    import polars as pl

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
ACTIVITY = arrow_of(
    [
        column("project_id", pa.string(), "scope that was worked on"),
        column("active_at", UTC_US, "when something was said, told or recalled there"),
    ]
)
# Entries that show somebody at work in a scope; imports and what Cortex notes by itself do not.
WORKING_KINDS = ("remember", "edit", "recall")
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


@dataclass(frozen=True)
class Aged:
    """
    What age has made of memories, with what it says of each (`marks`).

    `marks` has (memory_id, is_weak, weak_since, is_due), one row a memory, ordered by memory_id: whether its
    confidence is under the limit, since when a run has known so (null: not before), whether it is due to be
    pruned. `unaged` are the memories that were given, in the same order.
    """

    memories: pa.Table
    marks: pa.Table
    unaged: pa.Table


def age(
    memories: pa.Table,
    edges: pa.Table,
    policy: Policy,
    now: datetime,
    *,
    activity: pa.Table,
    weak: pa.Table,
) -> Aged:
    """
    Return `memories` with confidence, status, archived_at, centrality and rank as they are at `now`.

    Takes MEMORIES as the fold made them (those the journal archived, superseded or pruned marked), EDGES, the
    activity of their scopes as `activity_of` gives it, and what was found weak as `known_weak` gives
    it. Returns MEMORIES ordered by memory_id. Days count while a scope is worked on: its clock stands still
    in a pause and behind the last activity. Ageing what was aged at the same `now` changes nothing. The
    result follows the instant: a caller that wants a second run of the day to change nothing passes the start
    of the UTC day. `now` must be timezone-aware. A memory that leaves the active ones gets the instant at
    which its days of grace were over as archived_at, whenever the run was; those that fold archived stay so.
    Nothing is pruned here: what is due is marked.
    """
    ordered = _ordered(memories)
    narrow = ordered.select(LIFECYCLE_COLUMNS)
    # What a team holds in its repository stands as long as its file does, like what a person pinned.
    kept = pc.or_(ordered["is_pinned"], is_team_held(ordered))
    narrow = narrow.set_column(LIFECYCLE_COLUMNS.index("is_pinned"), "is_pinned", kept)
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
        clock=clock_of(activity, policy, now),
        weak=weak,
    )
    ranked = query(
        "rank",
        _thresholds(policy, RANK_THRESHOLDS),
        memories=narrow.append_column("confidence", faded["confidence"]),
    )
    columns = {
        "confidence": faded["confidence"],
        "status": faded["status"],
        "archived_at": faded["archived_at"],
        "centrality": central["centrality"],
        "rank": ranked["rank"],
    }
    marks = faded.select(["memory_id", "is_weak", "weak_since", "is_due"])
    return Aged(_replaced(ordered, columns), marks, ordered)


def clock_of(activity: pa.Table, policy: Policy, now: datetime) -> pa.Table:
    """
    Return the clocks of scopes at `now`: (project_id, active_at, worked_us, runs_us), by project and instant.

    Takes (project_id, active_at). A clock goes on from one activity to the next, at most `clock_pause_days`:
    what is beyond them is a pause, in which it stands still, as it does behind the last activity.
    """
    return query(
        "project_clock", {"now": now, **_thresholds(policy, ("clock_pause_days",))}, activity=activity
    )


def activity_of(turns: pa.Table, journal: pa.Table, scope: str) -> pa.Table:
    """
    Return when a scope was worked on: (project_id, active_at), the first and the last instant of each day.

    Takes TURNS rows with `said_at` and JOURNAL rows: what was said, what a person told or recalled, and when
    the store was at work that memories were imported from.
    """

    import polars as pl

    working = journal.filter(pc.is_in(journal["kind"], pa.array(WORKING_KINDS)))
    elsewhere = pa.table({"active_at": _worked_elsewhere(journal)}, schema=pa.schema([("active_at", UTC_US)]))
    frames = [
        as_polars(turns.select(["said_at"])),
        as_polars(working.select(["recorded_at"])),
        as_polars(elsewhere),
    ]
    instants = pl.concat([frame.rename({frame.columns[0]: "active_at"}) for frame in frames])
    marks = _ends_of_days(instants["active_at"])
    rows = pl.DataFrame({"project_id": pl.repeat(scope, len(marks), eager=True), "active_at": marks})
    return rows.to_arrow().cast(ACTIVITY)


def ends_of_days(turns: pa.Table) -> pa.Table:
    """Return of TURNS rows (said_at) the first and last instant of each day: all that `activity_of` needs."""

    import polars as pl

    said_at = as_polars(turns.select(["said_at"]))["said_at"]
    return pl.DataFrame({"said_at": _ends_of_days(said_at)}).to_arrow().cast(turns.select(["said_at"]).schema)


def _ends_of_days(instants: pl.Series) -> pl.Series:
    import polars as pl

    known = instants.drop_nulls().alias("at").to_frame()
    spans = known.group_by(pl.col("at").dt.date().alias("day")).agg(
        first=pl.col("at").min(), last=pl.col("at").max()
    )
    return pl.concat([spans["first"], spans["last"]]).unique().sort()


def _worked_elsewhere(journal: pa.Table) -> list[datetime]:
    return [
        datetime.fromisoformat(at) for _, entry in entries_in(journal, ActiveDays) for at in entry.active_at
    ]


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
    return sessions_joined([spans.rename_columns(["project_id", "session_id", "started_at", "ended_at"])])


def sessions_joined(pieces: Sequence[pa.Table]) -> pa.Table:
    """Return each session of tables as `sessions_of` gives them once, from its first to its last instant."""
    key = ["project_id", "session_id"]
    rows = pa.concat_tables(pieces).group_by(key).aggregate([("started_at", "min"), ("ended_at", "max")])
    named = rows.rename_columns([*key, "started_at", "ended_at"])
    return named.sort_by([(name, "ascending") for name in key])


def _thresholds(policy: Policy, names: tuple[str, ...]) -> dict[str, object]:
    return {name: policy.threshold(name) for name in names}


def _ordered(memories: pa.Table) -> pa.Table:
    ids = memories["memory_id"]
    if len(ids) < 2 or pc.all(pc.less_equal(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py():
        return memories
    return memories.sort_by("memory_id")


def _replaced(memories: pa.Table, columns: dict[str, pa.ChunkedArray[Any]]) -> pa.Table:
    for name, replacing in columns.items():
        position = memories.schema.get_field_index(name)
        field = memories.schema.field(name)
        memories = memories.set_column(position, field, replacing.cast(field.type))
    return memories


# -- Since when memories are known to be weak: what runs found and journaled, never reckoned back (spec
# 8.2).

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
