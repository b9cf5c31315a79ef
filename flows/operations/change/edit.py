"""Changes one memory that is named by its id: its words, whether it is pinned, what took its place."""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.flows.context.context import Context
from cortex.flows.operations.change.apply import Applied, apply_now
from cortex.flows.operations.change.remember import fact_of
from cortex.flows.operations.change.repetition import last_word, write_once
from cortex.flows.operations.lookup.targets import memory_of
from cortex.flows.stages.order import APPLY
from cortex.storage.store import Store
from cortex.transforms.errors import UsageError
from cortex.transforms.journal_entries import Confirm, Edit, Entry, Pin, Restore, Supersede, Unpin
from cortex.transforms.schemas import Row


@dataclass(frozen=True)
class MemoryChange:
    """A memory that was changed, with its words after the change."""

    memory_id: str
    text: str
    applied: Applied


@dataclass(frozen=True)
class Replacement:
    """A memory that is no longer shown, and the memory in its place."""

    old_id: str
    old_text: str
    new_id: str
    new_text: str
    applied: Applied


def edit(context: Context, memory: str, text: str) -> MemoryChange:
    """Put other words in a memory's place; its id, age and evidence stay. Raises NotFound, LowQuality."""
    store = context.open_store()
    row = memory_of(context, store, memory)
    fact = fact_of(text, context.policy)
    return _change(context, store, {**row, "text": fact}, Edit(fact))


def pin(context: Context, memory: str) -> MemoryChange:
    """Keep a memory from fading and from being merged. Raises NotFound."""
    store = context.open_store()
    return _change(context, store, memory_of(context, store, memory), Pin())


def unpin(context: Context, memory: str) -> MemoryChange:
    """Let a memory fade and be merged as others do. Raises NotFound."""
    store = context.open_store()
    return _change(context, store, memory_of(context, store, memory), Unpin())


def confirm(context: Context, memories: Sequence[str]) -> list[MemoryChange]:
    """
    Say that memories still hold: they count as said again today, and one that faded is shown again.

    Raises NotFound; UsageError, with nothing written, where another memory has taken the place of one.
    """
    store = context.open_store()
    rows = [memory_of(context, store, memory) for memory in memories]
    for row in rows:
        if by := row["superseded_by"] or row["merged_into"]:
            raise UsageError(
                f"{by[:12]} has taken the place of {row['memory_id'][:12]}.",
                f"Confirm that: cortex confirm {by[:12]}",
            )
    for row in rows:
        entry = Confirm().to_row(row["project_id"], recorded_at=context.now, memory_id=row["memory_id"])
        store.journal.write(entry)
    applied = apply_now(context, APPLY)
    return [MemoryChange(row["memory_id"], row["text"], applied) for row in rows]


def supersede(context: Context, old: str, new: str) -> Replacement:
    """
    Put one memory in another's place; the old one is no longer shown.

    Raises NotFound; UsageError for two of different projects, and where the new one was superseded itself.
    """
    store = context.open_store()
    gone, by = memory_of(context, store, old), memory_of(context, store, new)
    if gone["memory_id"] == by["memory_id"]:
        raise UsageError("both ids name the same memory.", "Give the old one, then the new one.")
    if gone["project_id"] != by["project_id"]:
        raise UsageError(
            "the two belong to different projects.", "Forget the old one instead: cortex forget ID"
        )
    if by["status"] == "superseded":
        raise UsageError(
            f"{by['memory_id'][:12]} was superseded itself.",
            f"Give the memory in its place, or undo that: cortex supersede --undo {by['memory_id'][:12]}",
        )
    applied = _change(context, store, gone, Supersede(by["memory_id"])).applied
    return Replacement(gone["memory_id"], gone["text"], by["memory_id"], by["text"], applied)


def undo_supersede(context: Context, memory: str) -> MemoryChange:
    """Show a superseded memory again. Raises NotFound; UsageError if nothing took its place."""
    store = context.open_store()
    row = memory_of(context, store, memory)
    is_begun = last_word(store, Restore(), row["project_id"], row["memory_id"]) == Restore()
    if row["status"] != "superseded" and not is_begun:
        raise UsageError(f"{row['memory_id'][:12]} was not superseded.", "There is nothing to undo.")
    return _change(context, store, row, Restore())


def undo_archive(context: Context, memory: str) -> MemoryChange:
    """Show an archived memory again. Raises NotFound; UsageError for one that is shown, or was merged."""
    store = context.open_store()
    row = memory_of(context, store, memory)
    if row["status"] != "archived":
        raise UsageError(f"{row['memory_id'][:12]} is not archived.", "There is nothing to undo.")
    if row["merged_into"]:
        problem = f"{row['memory_id'][:12]} was merged into {row['merged_into'][:12]}."
        raise UsageError(problem, "Undo the merge instead: cortex consolidate --undo")
    return _change(context, store, row, Restore())


def _change(context: Context, store: Store, row: Row, entry: Entry) -> MemoryChange:
    write_once(context, store, entry, row["project_id"], row["memory_id"])
    return MemoryChange(row["memory_id"], row["text"], apply_now(context, APPLY))
