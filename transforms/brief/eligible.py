"""What of the memories a reader may be told at all, and how much room each gets (spec 5.2, 8.4)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.brief.brief_sections import TellingOrder
from cortex.transforms.brief.wording import LIVING_PLAN
from cortex.transforms.extract.ground.candidate import PERSONS_LAYERS, TAG_LAYER
from cortex.transforms.memory.lifecycle import TIER_COLUMNS, immortal_tiers, sessions_of
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import TRUSTS, TURNS, Row, values
from cortex.transforms.vocabulary import TEAM_LAYER

# A memory's place in the order of a language model, from 0; what it has not seen counts down from -1.
ORDER_PLACE = "place"
CHOOSING_COLUMNS = [
    *("memory_id", "memory_type", "text", "files", "status", "trust", "confidence", "initial_confidence"),
    *("is_pinned", "rank", "updated_at", "project_id", "last_accessed_at", "source_type", ORDER_PLACE),
    *("valid_until", "closed_by"),
]
BELIEVED_TRUSTS = TRUSTS[TRUSTS.index("assistant") :]
ARCHIVE = "archive"
# Sessions of a store that was never fed: nothing has passed a memory by.
NO_SESSIONS = sessions_of(TURNS.empty(), {})


@dataclass(frozen=True)
class Standing:
    """How many sessions have passed a memory by, and the room a decision has: full, short or archive."""

    sessions_since: int = 0
    tier: str | None = None


def with_choices_first(memories: pa.Table, policy: Policy) -> pa.Table:
    """
    Return MEMORIES with the rank raised of what a person said on purpose, and of what one chose or wishes.

    What is said on purpose is raised above all else; a choice, and what a team reviewed, binds more than what
    an assistant settled.
    """
    layers = pc.struct_field(pc.list_flatten(memories["evidence"]), "layer")
    is_by_person = pc.or_(*(pc.ends_with(layers, end) for end in PERSONS_LAYERS))
    is_told = pc.or_(is_by_person, pc.starts_with(layers, TEAM_LAYER))
    by_person = set(pc.list_parent_indices(memories["evidence"]).filter(is_told).to_pylist())
    is_binding = [kind in policy.types_with("is_binding") for kind in memories["memory_type"].to_pylist()]
    bonus, lead = policy.threshold("brief_choice_bonus"), policy.threshold("brief_explicit_bonus")
    on_purpose = is_on_purpose(memories).to_pylist()
    raised = pa.array(
        [
            lead * bool(meant) + bonus * (at in by_person and binds)
            for at, (meant, binds) in enumerate(zip(on_purpose, is_binding, strict=True))
        ],
        pa.float64(),
    )
    position = memories.schema.get_field_index("rank")
    return memories.set_column(position, "rank", pc.add(memories["rank"], raised))


def with_places(memories: pa.Table, order: TellingOrder, sessions: pa.Table, policy: Policy) -> pa.Table:
    """
    Return MEMORIES with the column ORDER_PLACE, null for all where `order` is empty.

    What was tagged in the last sessions, and what is newer than the order, comes before it, the newest first.
    What the order names and a consolidation took up stands for what it became.
    """
    columns = ["memory_id", "project_id", "updated_at", "evidence", "merged_into"]
    rows = memories.select(columns).to_pylist() if order.memory_ids else []
    into = {row["memory_id"]: row["merged_into"] for row in rows if row["merged_into"]}
    seen = {*order.seen, *(into[name] for name in into if name in order.seen)}
    places: dict[str, int] = {}
    for at, name in enumerate(order.memory_ids):
        places.setdefault(_taken_up(name, into), at)
    project = pa.array({row["project_id"] for row in rows}, pa.string())
    of_project = sessions.filter(pc.field("project_id").isin(project))
    last = _last_sessions(of_project, int(policy.threshold("project_recent_sessions")))
    fresh = [row for row in rows if row["memory_id"] not in seen or _is_tagged(row, last)]
    for before, row in enumerate(
        sorted(fresh, key=lambda row: (row["updated_at"], row["memory_id"])), start=1
    ):
        places[row["memory_id"]] = -before
    given = [places.get(row["memory_id"]) for row in rows] if rows else [None] * memories.num_rows
    return memories.append_column(ORDER_PLACE, pa.array(given, pa.int64()))


def _taken_up(name: str, into: Mapping[str, str]) -> str:
    """Return the memory that one became over all consolidations; itself where none took it up."""
    passed = {name}
    while (after := into.get(name)) and after not in passed:
        passed.add(after)
        name = after
    return name


def _last_sessions(sessions: pa.Table, count: int) -> frozenset[str]:
    """Return the sessions of a project that began last, of sessions as `sessions_of` gives them."""
    newest = sessions.sort_by([("started_at", "descending"), ("session_id", "ascending")])
    return frozenset(values(newest.slice(0, count), "session_id"))


def _is_tagged(row: Row, sessions: AbstractSet[str]) -> bool:
    return any(place["layer"] == TAG_LAYER and place["session_id"] in sessions for place in row["evidence"])


def believed(memories: pa.Table, policy: Policy) -> pa.Table:
    """Return the rows that may be shown at all: what chooses among them, and their position in `memories`."""
    # How sure a fact was when it was said decides whether it is told at all. Age makes it weaker by half in a
    # month and no less true in a week: it is told until it fades (spec 8.2). Where the work stands does not
    # get less true while nobody works on it. What a person pinned is wanted however sure it is.
    is_sure = pc.field("initial_confidence") >= policy.threshold("brief_min_confidence")
    is_fresh = pc.field("confidence") >= policy.threshold("archive_below_confidence")
    is_state = is_plan() | (pc.field("memory_type") == "outcome")
    is_told = (is_sure & (is_fresh | is_state)) | pc.field("is_pinned")
    is_believed = pc.field("trust").isin(BELIEVED_TRUSTS)
    positions = pa.array(range(memories.num_rows), pa.int64())
    # Without the evidence: moving it with each filter takes most of the time over 50,000 memories.
    if ORDER_PLACE not in memories.schema.names:
        memories = memories.append_column(ORDER_PLACE, pa.nulls(memories.num_rows, pa.int64()))
    slim = memories.select(CHOOSING_COLUMNS).append_column("position", positions)
    slim = slim.append_column("is_on_purpose", is_on_purpose(memories))
    return slim.filter((pc.field("status") == "active") & is_believed & is_told)


def is_on_purpose(memories: pa.Table) -> "pa.ChunkedArray[Any]":
    """Return, by row of MEMORIES, whether a person remembered, edited or pinned it: they want it told."""
    # What was indexed from code stays that when a person edits it, and is believed as theirs from then on.
    is_code = pc.equal(memories["source_type"], pa.scalar("code_index"))
    is_edited_code = pc.and_(is_code, pc.equal(memories["trust"], pa.scalar("user")))
    is_worded = pc.or_(pc.equal(memories["source_type"], pa.scalar("explicit")), is_edited_code)
    return cast("pa.ChunkedArray[Any]", pc.or_(is_worded, memories["is_pinned"]))


def is_plan() -> pc.Expression:
    """Return the condition of a plan that still has a step to do."""
    return (pc.field("memory_type") == "progress") & pc.match_substring_regex(pc.field("text"), LIVING_PLAN)


def standings(rows: pa.Table, sessions: pa.Table, policy: Policy) -> dict[str, Standing]:
    """Return the standing of each believed decision and plan, by memory_id; no other row has one."""
    types = pa.array(sorted(policy.types_with("is_passed_by")), pa.string())
    passed_by = rows.filter(pc.field("memory_type").isin(types))
    tiers = immortal_tiers(passed_by.select(TIER_COLUMNS), sessions, policy)
    columns = (values(tiers, name) for name in ("memory_id", "sessions_since", "tier"))
    return {name: Standing(since, tier) for name, since, tier in zip(*columns, strict=True)}


def archived_decisions(memories: pa.Table, sessions: pa.Table, policy: Policy) -> pa.Table:
    """
    Return the MEMORIES that no brief has room for any more, newest first: decisions untouched for long.

    Takes MEMORIES of one project and the global ones, ranked, and their sessions.
    """
    rows = believed(with_choices_first(memories, policy), policy)
    place_of = dict(zip(values(rows, "memory_id"), values(rows, "position"), strict=True))
    archived = [
        place_of[name]
        for name, standing in standings(rows, sessions, policy).items()
        if standing.tier == ARCHIVE
    ]
    oldest_last = memories.take(pa.array(sorted(archived), pa.int64()))
    return oldest_last.sort_by([("updated_at", "descending"), ("memory_id", "ascending")])
