"""What a person did to a memory, carried over to the one that another extractor makes of the same words."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.journal_entries import (
    Archive,
    Confirm,
    Dismiss,
    Edit,
    Entry,
    Pin,
    Restore,
    Supersede,
    Unpin,
    from_row,
    in_order,
)
from cortex.transforms.memory.forgetting import CARRIER
from cortex.transforms.memory.imported import import_of
from cortex.transforms.memory.merged_projects import with_names
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL, Row, values
from cortex.transforms.words.overlap import share_of_all, share_of_fewer
from cortex.transforms.words.scripts import long_words

# Entries by which a person changes a memory or says something of it; the others bring it in, or are a run's.
CHANGES = (Edit, Pin, Unpin, Confirm, Supersede, Archive, Restore, Dismiss)


class Folds(NamedTuple):
    """MEMORIES of one scope: live; live without what persons changed; as the other extractor makes them."""

    live: pa.Table
    unchanged: pa.Table
    rederived: pa.Table


@dataclass(frozen=True)
class CarryOver:
    """
    What happens to a person's entries about memories that another extractor no longer makes.

    `rows` are JOURNAL rows to add. `successors` gives the new memory_id by the old one. `kept` are memories
    that stay as they were, since nothing follows them. `lapsed` are the JOURNAL rows without any effect now.
    """

    rows: pa.Table
    successors: dict[str, str]
    carried: int
    kept: tuple[str, ...]
    lapsed: tuple[Row, ...]


def carry_over(folds: Folds, journal: pa.Table, policy: Policy) -> CarryOver:
    """
    Return how the entries of a scope's `journal` go on; with nothing gone, or done before, there is nothing.

    An entry counts for the successor from the instant at which the person made it. A memory without one
    stays, as an import of what it was, where a person pinned or edited it or put it in another's place.
    """
    live = {row["memory_id"]: row for row in folds.live.to_pylist()}
    rederived = {row["memory_id"]: row for row in folds.rederived.to_pylist()}
    unchanged = {row["memory_id"]: row for row in folds.unchanged.to_pylist()}
    gone = {name: row for name, row in live.items() if name not in rederived and row["status"] != "pruned"}
    names = _successors(gone, [row for name, row in rederived.items() if name not in live], unchanged, policy)
    entries = [(row, from_row(row)) for row in in_order(journal).to_pylist()]
    entries = [(row, entry) for row, entry in entries if isinstance(entry, CHANGES)]
    entries = [(row, entry) for row, entry in entries if _about(row, entry) & gone.keys()]
    standing = [(row, entry) for row, entry in entries if _stands(row, entry, live)]
    lost = gone.keys() - names.keys()
    held = sorted(_held(standing, lost, live) & unchanged.keys())
    lapsed = [row for row, entry in standing if _about(row, entry) & lost.difference(held)]
    without = {row["entry_id"] for row in lapsed}
    renamed = [_carried(row, entry, names) for row, entry in standing if row["entry_id"] not in without]
    carried = [row for row in renamed if row is not None]
    known = set(values(journal, "entry_id"))
    rows = [
        row for row in [*carried, *(_kept(unchanged[name]) for name in held)] if row["entry_id"] not in known
    ]
    return CarryOver(JOURNAL.of(rows), names, len(carried), tuple(held), tuple(lapsed))


def without_changes(journal: pa.Table) -> pa.Table:
    """Return JOURNAL rows without those by which persons changed memories."""
    kinds = pa.array([entry.kind for entry in CHANGES])
    return journal.filter(pc.invert(pc.is_in(journal["kind"], kinds)))


def _successors(
    gone: dict[str, Row], new: Iterable[Row], unchanged: dict[str, Row], policy: Policy
) -> dict[str, str]:
    """
    Return old memory_id → new: of one turn at least, in mostly the same words; each new one follows one.

    The nearest pair comes first: by the share of all words, of one type before another, then by id.
    """
    least_share = policy.threshold("carried_words_share")
    least_words = policy.threshold("carried_min_words")
    by_turn: dict[str, list[Row]] = {}
    for row in new:
        if row["status"] == "active":
            for place in row["evidence"]:
                by_turn.setdefault(place["turn_id"], []).append(row)
    pairs = []
    for name, row in gone.items():
        texts = [long_words(text) for text in {row["text"], unchanged.get(name, row)["text"]}]
        followers = {
            other["memory_id"]: other for p in row["evidence"] for other in by_turn.get(p["turn_id"], ())
        }
        for other_name, other in followers.items():
            theirs = long_words(other["text"])
            near = [
                w
                for w in texts
                if len(w & theirs) >= least_words and share_of_fewer(w, theirs) >= least_share
            ]
            if near:
                share = max(share_of_all(words, theirs) for words in near)
                pairs.append((-share, row["memory_type"] != other["memory_type"], name, other_name))
    return _each_once((old, follower) for *_, old, follower in sorted(pairs))


def _each_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs of which no side is in an earlier one."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for old, new in pairs:
        if old not in names and new not in taken:
            names[old] = new
            taken.add(new)
    return names


def _about(row: Row, entry: Entry) -> set[str]:
    """Return the memories that an entry names."""
    match entry:
        case Dismiss():
            return {row["memory_id"], *entry.memory_ids} - {None}
        case Supersede():
            return {row["memory_id"], entry.by}
    return {row["memory_id"]}


def _stands(row: Row, entry: Entry, live: dict[str, Row]) -> bool:
    """Return whether an entry about a memory counts; one memory in another's place may have been put back."""
    if not isinstance(entry, Supersede):
        return True
    return live.get(row["memory_id"], {}).get("superseded_by") == entry.by


def _held(standing: Sequence[tuple[Row, Entry]], lost: AbstractSet[str], live: dict[str, Row]) -> set[str]:
    """Return which of the `lost` memories a person pinned, edited, or put in the place of one that stays."""
    held = {name for name in lost if live[name]["is_pinned"]}
    held |= {row["memory_id"] for row, entry in standing if isinstance(entry, Edit)} & lost
    placed = ((row["memory_id"], entry.by) for row, entry in standing if isinstance(entry, Supersede))
    return held | ({by for name, by in placed if name not in lost or name in held} & lost)


def _kept(memory: Row) -> Row:
    """Return the entry that brings a memory in as it was when first said: what was done to it comes later."""
    at, name = memory["created_at"], memory["memory_id"]
    return import_of(memory).to_row(memory["project_id"], recorded_at=at, memory_id=name, actor=CARRIER)


def _carried(row: Row, entry: Entry, names: dict[str, str]) -> Row | None:
    """Return the entry about the successors of what it names; None if none has one."""
    name, carried = names.get(row["memory_id"], row["memory_id"]), with_names(entry, names)
    if (name, carried) == (row["memory_id"], entry):
        return None
    # A memory that stays has the old entry as well: the one that counts comes after it.
    later = timedelta(microseconds=isinstance(entry, Supersede) and name == row["memory_id"])
    return carried.to_row(
        row["project_id"], recorded_at=row["recorded_at"] + later, memory_id=name, actor=CARRIER
    )
