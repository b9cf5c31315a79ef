"""Projects merged into one: their rows as if all had been said in that one from the start (spec 3.1)."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.journal_entries import (
    Dismiss,
    Entry,
    Fade,
    Import,
    ImportFact,
    ImportMemory,
    Merge,
    Recall,
    Recover,
    Remember,
    Supersede,
    TeamFact,
    Withdraw,
    entries_in,
    from_row,
    is_prune,
)
from cortex.transforms.memory.fold import by_memory, file_memory_id, fold, memory_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, GLOBAL_SCOPE, JOURNAL, Row, values


def fold_joined(
    events: pa.Table,
    journal: pa.Table,
    policy: Policy,
    project_id: str,
    *,
    vouching: pa.Table | None = None,
) -> pa.Table:
    """
    Return the MEMORIES that EVENTS and JOURNAL rows of several projects make in the one named.

    A fact that two of them hold becomes one memory with the evidence of both. Rows of that project alone
    give what `fold` gives, of which `vouching` is explained there.
    """
    if _is_whole(events, journal, project_id):
        return fold(events, journal, policy, vouching=vouching)
    names = joined_names(events, journal, policy, project_id)
    whole = renamed(journal, names, project_id)
    vouching = None if vouching is None else renamed(vouching, names, project_id)
    return fold(in_project(events, project_id), whole, policy, vouching=vouching)


def joined_names(events: pa.Table, journal: pa.Table, policy: Policy, project_id: str) -> dict[str, str]:
    """
    Return, for the memories that go by another id once projects are one, old memory_id → new.

    An id is made from the scope and the fact, so each merged project's entries name its memories otherwise.
    """
    if _is_whole(events, journal, project_id):
        return {}
    whole = by_memory(in_project(events, project_id), policy)
    new_of = {event["event_id"]: name for name, its_events in whole.items() for event in its_events}
    names: dict[str, str] = {}
    for part in sorted(set(values(events, "project_id"))):
        for old, its_events in by_memory(events.filter(pc.field("project_id") == part), policy).items():
            # A plan may be parted by what the other project did: then its last word decides.
            last = max(its_events, key=lambda e: (e["said_at"] or EPOCH, e["event_id"]))
            names[old] = new_of[last["event_id"]]
    given: list[tuple[Row, Remember | Import | TeamFact]] = [
        *entries_in(journal, Remember),
        *entries_in(journal, ImportFact),
        *entries_in(journal, ImportMemory),
        *entries_in(journal, TeamFact),
    ]
    for row, entry in given:
        facts = [(memory_id, entry.text), *((file_memory_id, file) for file in (entry.files or [])[:1])]
        for id_of, fact in facts:
            if row["memory_id"] == id_of(row["project_id"], entry.memory_type, fact):
                names[row["memory_id"]] = id_of(project_id, entry.memory_type, fact)
    return {old: new for old, new in names.items() if old != new}


def own_names(
    events: pa.Table, journal: pa.Table, policy: Policy, project_id: str, name: str
) -> list[tuple[str, str]]:
    """
    Return (project id, memory_id) under which each merged project knows a memory of the whole, sorted.

    What is done under these names holds when the projects are split again; empty if nothing is merged.
    """
    names = joined_names(events, journal, policy, project_id)
    ids = {old for old, new in names.items() if new == name}
    parts = set(values(events, "project_id")) - {project_id}
    homes = {
        (part, old)
        for part in parts
        for old in ids & by_memory(events.filter(pc.field("project_id") == part), policy).keys()
    }
    noted = zip(
        values(journal, "project_id"), values(journal, "memory_id"), values(journal, "kind"), strict=True
    )
    homes |= {
        (part, old) for part, old, kind in noted if old in ids and kind in ("remember", "import", "team")
    }
    return sorted(homes)


def in_project(rows: pa.Table, project_id: str) -> pa.Table:
    """Return rows of any table with a column project_id as those of one project."""
    position = rows.schema.get_field_index("project_id")
    same = pa.array([project_id] * rows.num_rows, pa.string())
    return rows.set_column(position, rows.schema.field("project_id"), same)


def renamed(journal: pa.Table, names: dict[str, str], project_id: str) -> pa.Table:
    """
    Return JOURNAL rows as entries of one project about its memories; entry ids stay.

    A tombstone of a pruned memory keeps its name: the other project's like fact has not faded with it.
    """
    return JOURNAL.of([_renamed(row, names, project_id) for row in journal.to_pylist()])


def _renamed(row: Row, names: dict[str, str], project_id: str) -> Row:
    entry = from_row(row)
    if is_prune(entry):
        return {**row, "project_id": project_id}
    return {
        **row,
        "project_id": project_id,
        "memory_id": names.get(row["memory_id"], row["memory_id"]),
        "payload": with_names(entry, names).payload,
    }


def with_names(entry: Entry, names: dict[str, str]) -> Entry:
    """Return an entry with the names of other memories in it replaced."""
    match entry:
        case Merge():
            return replace(entry, members=_named(entry.members, names))
        case Recall() | Dismiss() | Fade() | Recover():
            return replace(entry, memory_ids=_named(entry.memory_ids, names))
        case Supersede():
            return replace(entry, by=names.get(entry.by, entry.by))
        case Withdraw(by=str(by)):
            return replace(entry, by=names.get(by, by))
        case ImportMemory(superseded_by=by, merged_into=into):
            return replace(
                entry,
                superseded_by=names.get(by, by) if by else by,
                merged_into=names.get(into, into) if into else into,
            )
    return entry


def _named(memory_ids: Sequence[str], names: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(names.get(name, name) for name in memory_ids))


def _is_whole(events: pa.Table, journal: pa.Table, project_id: str) -> bool:
    """Return whether there is nothing to join: rows of one project, or those of the scope `global`."""
    others = {*values(events, "project_id"), *values(journal, "project_id")}
    return project_id == GLOBAL_SCOPE or others <= {project_id}
