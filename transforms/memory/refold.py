"""The fold in part: of a scope that was folded before, only the memories that what is new touches."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.extract.language.candidate import is_prose_alone
from cortex.transforms.journal_entries import (
    Forget,
    ImportMemory,
    Merge,
    Prune,
    Recall,
    Unmerge,
    entries_in,
    from_row,
)
from cortex.transforms.memory.fold import by_memory, fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import values

# After these a memory no longer holds all the evidence that it was folded from.
HIDING = tuple(entry.kind for entry in (Forget, Prune, Unmerge))
PLAN_TYPE = "progress"


def refold(
    before: pa.Table,
    sessions: AbstractSet[str],
    entries: pa.Table,
    events: pa.Table,
    journal: pa.Table,
    policy: Policy,
) -> tuple[pa.Table, pa.Table] | None:
    """
    Return the MEMORIES that stay as they were, and those folded now: together what `fold` gives of all.

    Takes the MEMORIES of one scope as they were folded `before`, the `sessions` whose events may be others
    since, the JOURNAL rows that came since (`entries`), and all EVENTS and JOURNAL rows. Folded again are the
    memories that rest on these sessions or on one that is gone, those that the entries name, and those merged
    with them. Returns None where what these are made of is not known any more: then all are to be folded.
    """
    events = events.filter(pc.is_valid(events["memory_type"]))
    if _has_prose(events.select(["layer", "memory_type"])):
        return None
    sessions = {*sessions, *_gone(before, events)}
    fresh = _of_sessions(events, sessions)
    ids = {*_resting_on(before, sessions), *by_memory(fresh, policy), *_named_in(entries)}
    plans = set(values(before.filter(pc.field("memory_type") == PLAN_TYPE), "memory_id"))
    # Which plan a list carries on depends on all plans.
    has_plans = not plans.isdisjoint(ids) or PLAN_TYPE in set(values(fresh, "memory_type"))
    ids = _with_merged(ids | (plans if has_plans else set()), journal)
    earlier = journal.filter(pc.invert(pc.is_in(journal["entry_id"], entries["entry_id"].combine_chunks())))
    hidden = earlier.filter(pc.is_in(earlier["kind"], pa.array(HIDING)))
    if not ids.isdisjoint(values(hidden, "memory_id")):
        return None
    names = pa.array(sorted(ids), pa.string())
    is_again = pc.is_in(before["memory_id"], names)
    places = pc.list_flatten(before.filter(is_again)["evidence"])
    rested_on = {*sessions, *pc.struct_field(places, "session_id").to_pylist()}
    about = pc.or_(pc.is_in(journal["memory_id"], names), pc.equal(journal["kind"], pa.scalar(Recall.kind)))
    folded = fold(_of_sessions(events, rested_on, has_plans), journal.filter(about), policy)
    return before.filter(pc.invert(is_again)), folded.filter(pc.is_in(folded["memory_id"], names))


def _has_prose(kinds: pa.Table) -> bool:
    """Return whether events that nobody but the assistant said name a memory type, as they once did."""
    pairs = kinds.group_by(kinds.schema.names).aggregate([])
    return any(is_prose_alone(row["layer"], row["memory_type"]) for row in pairs.to_pylist())


def _of_sessions(events: pa.Table, sessions: AbstractSet[str], has_plans: bool = False) -> pa.Table:
    is_of = pc.field("session_id").isin(pa.array(sorted(sessions), pa.string()))
    return events.filter(is_of | (pc.field("memory_type") == PLAN_TYPE) if has_plans else is_of)


def _gone(memories: pa.Table, events: pa.Table) -> Iterable[str]:
    """Return the sessions that memories rest on and that have no events any more, or never had any here."""
    known = pc.unique(pc.struct_field(pc.list_flatten(memories["evidence"]), "session_id"))
    return filter(None, set(known.to_pylist()) - set(pc.unique(events["session_id"]).to_pylist()))


def _resting_on(memories: pa.Table, sessions: AbstractSet[str]) -> list[str]:
    places = memories["evidence"].combine_chunks()
    of_session = pc.struct_field(pc.list_flatten(places), "session_id")
    is_of = pc.is_in(of_session, pa.array(sorted(sessions), pa.string()))
    rows = pc.unique(pc.list_parent_indices(places).filter(is_of))
    return values(memories.take(rows), "memory_id")


def _named_in(entries: pa.Table) -> Iterable[str]:
    for row in entries.to_pylist():
        entry = from_row(row)
        yield from entry.memory_ids if isinstance(entry, Recall) else filter(None, [row["memory_id"]])


def _with_merged(ids: AbstractSet[str], journal: pa.Table) -> set[str]:
    """Return `ids` with all that was merged with one of them, directly or through others."""
    left = [{row["memory_id"], *entry.members} for row, entry in entries_in(journal, Merge)]
    left += [
        {row["memory_id"], entry.merged_into}
        for row, entry in entries_in(journal, ImportMemory)
        if entry.merged_into
    ]
    known = set(ids)
    while near := [group for group in left if not known.isdisjoint(group)]:
        known.update(*near)
        left = [group for group in left if not group <= known]
    return known
