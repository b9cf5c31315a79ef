"""Projects merged into one: their rows as if all had been said in that one from the start (spec 3.1)."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.memory.fold import by_memory, file_memory_id, fold, memory_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, JOURNAL, values

Row = dict[str, Any]


def fold_as_one(events: pa.Table, journal: pa.Table, policy: Policy, project_id: str) -> pa.Table:
    """
    Return the MEMORIES that EVENTS and JOURNAL rows of several projects make in the one named.

    A fact that two of them hold becomes one memory with the evidence of both. Rows of that project alone
    give what `fold` gives.
    """
    if _is_whole(events, journal, project_id):
        return fold(events, journal, policy)
    names = names_in_one(events, journal, policy, project_id)
    return fold(in_project(events, project_id), renamed(journal, names, project_id), policy)


def names_in_one(events: pa.Table, journal: pa.Table, policy: Policy, project_id: str) -> dict[str, str]:
    """
    Return, for the memories that go by another id once projects are one, old memory_id → new.

    An id is made from the scope and the fact, so each merged project's entries name its memories otherwise.
    """
    if _is_whole(events, journal, project_id):
        return {}
    whole = by_memory(in_project(events, project_id), policy)
    new_of = {event["event_id"]: name for name, said in whole.items() for event in said}
    names: dict[str, str] = {}
    for part in sorted(set(values(events, "project_id"))):
        for old, said in by_memory(events.filter(pc.field("project_id") == part), policy).items():
            # A plan may be parted by what the other project did: then its last word decides.
            last = max(said, key=lambda e: (e["said_at"] or EPOCH, e["event_id"]))
            names[old] = new_of[last["event_id"]]
    for row in journal.to_pylist():
        if row["kind"] in ("remember", "import"):
            told = json.loads(row["payload"])
            facts = [
                (memory_id, told["text"]),
                *((file_memory_id, file) for file in told.get("files", [])[:1]),
            ]
            for id_of, fact in facts:
                if row["memory_id"] == id_of(row["project_id"], told["memory_type"], fact):
                    names[row["memory_id"]] = id_of(project_id, told["memory_type"], fact)
    return {old: new for old, new in names.items() if old != new}


def own_names(
    events: pa.Table, journal: pa.Table, policy: Policy, project_id: str, name: str
) -> list[tuple[str, str]]:
    """
    Return (project id, memory_id) under which each merged project knows a memory of the whole, sorted.

    What is done under these names holds when the projects are split again; empty where nothing is merged.
    """
    names = names_in_one(events, journal, policy, project_id)
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
    homes |= {(part, old) for part, old, kind in noted if old in ids and kind in ("remember", "import")}
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
    told = json.loads(row["payload"])
    if row["kind"] == "prune" or "pruned" in told:
        return {**row, "project_id": project_id}
    for key in ("members", "memory_ids"):
        if key in told:
            told[key] = list(dict.fromkeys(names.get(name, name) for name in told[key]))
    for key in ("by", "superseded_by", "merged_into"):
        if key in told:
            told[key] = names.get(told[key], told[key])
    return {
        **row,
        "project_id": project_id,
        "memory_id": names.get(row["memory_id"], row["memory_id"]),
        "payload": json.dumps(told, ensure_ascii=False, sort_keys=True),
    }


def _is_whole(events: pa.Table, journal: pa.Table, project_id: str) -> bool:
    """Return whether there is nothing to join: rows of one project, or those of the scope `global`."""
    others = {*values(events, "project_id"), *values(journal, "project_id")}
    return project_id == "global" or others <= {project_id}
