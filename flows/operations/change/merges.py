"""Merges memories that say the same, proposes that, undoes it; names a moment to return to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cortex.flows.context.context import Context
from cortex.flows.engines.runs import looking
from cortex.flows.operations.change.apply import Applied, apply_now
from cortex.flows.run.verdicts import same_statements_in
from cortex.flows.stages.order import APPLY, CONSOLIDATE
from cortex.storage.store import Store
from cortex.transforms.errors import PlanOutdated, UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Checkpoint, Merge, Unmerge, from_row
from cortex.transforms.memory.consolidate import propose, to_undo
from cortex.transforms.schemas import GLOBAL_SCOPE, Row, values


@dataclass(frozen=True)
class MemoryMerge:
    """Memories, by id, that became one or could: `text` is what the one says, `texts` what they say."""

    memory_id: str
    project_id: str
    members: Sequence[str]
    text: str
    texts: Sequence[str] = ()
    memory_type: str | None = None


@dataclass(frozen=True)
class Consolidation:
    """The merges that were done, or undone."""

    merges: Sequence[MemoryMerge]
    applied: Applied


@dataclass(frozen=True)
class MergePlan:
    """What a consolidation would merge; its id says exactly that, and changes with it."""

    plan_id: str
    merges: Sequence[MemoryMerge]


@dataclass(frozen=True)
class Moment:
    """A moment with a name."""

    name: str
    at: datetime


def checkpoint(context: Context, name: str) -> Moment:
    """Give this moment a name that `undo_merges` goes back to."""
    at = context.now
    context.open_store().journal.write(Checkpoint(name).to_row(GLOBAL_SCOPE, recorded_at=at))
    return Moment(name, at)


def merge_duplicates(context: Context) -> Consolidation:
    """Merge what says the same in every scope; the originals stay, archived."""
    before = {row["memory_id"] for row in _merge_rows(context.open_store())}
    applied = apply_now(context, CONSOLIDATE)
    rows = [row for row in _merge_rows(context.open_store()) if row["memory_id"] not in before]
    return Consolidation([_merge_of(row) for row in rows], applied)


def propose_merges(context: Context) -> list[MemoryMerge]:
    """Return what a consolidation would merge."""
    run = looking(context)
    proposals: list[MemoryMerge] = []
    for scope in filter(context.sees, run.store.tables.scopes()):
        memories = run.store.tables.open(scope, "memories").read()
        texts = dict(zip(values(memories, "memory_id"), values(memories, "text"), strict=True))
        undone = run.readings.merged_journal(scope)
        same = same_statements_in(run, scope, memories)
        vectors, model = run.readings.vectors(), run.embedding.model
        proposed = propose(memories, vectors, run.policy, model, run.now, undone=undone, same=same)
        proposals += [_merge_of(row, texts) for row in proposed.to_pylist()]
    return proposals


def plan_merges(context: Context) -> MergePlan:
    """Return what a consolidation would merge in the scopes that the caller sees; nothing is changed."""
    merges = propose_merges(context)
    entries = [(merge.memory_id, merge.project_id, *merge.members, merge.text) for merge in merges]
    return MergePlan(content_id("merge plan", *(part for entry in entries for part in entry))[:16], merges)


def carry_out(context: Context, plan_id: str) -> Consolidation:
    """
    Merge what the plan of this id says, and nothing else.

    Raises PlanOutdated if the memories have changed since, so that another plan would be made now.
    """
    plan = plan_merges(context)
    if plan.plan_id != plan_id:
        raise PlanOutdated(
            f"there is no plan {plan_id[:32]}, or the memories have changed since.",
            f"Look at the plan as it is now, {plan.plan_id}, before it is carried out.",
        )
    journal, at = context.open_store().journal, context.now
    for merge in plan.merges:
        entry = Merge(list(merge.members), merge.text, merge.memory_type)
        journal.write(entry.to_row(merge.project_id, recorded_at=at, memory_id=merge.memory_id))
    applied = apply_now(context, APPLY) if plan.merges else Applied(True)
    return Consolidation(plan.merges, applied)


def undo_merges(context: Context, to: str | None = None) -> Consolidation:
    """Undo the last consolidation, or all since the checkpoint `to`, by entries of the journal."""
    store, at = context.open_store(), context.now
    undone = to_undo(store.journal.read(), to)
    for position, row in enumerate(undone):
        # One microsecond apart: a merge of merges is undone before what it merged.
        later = at + timedelta(microseconds=position)
        store.journal.write(
            Unmerge().to_row(row["project_id"], recorded_at=later, memory_id=row["memory_id"])
        )
    applied = apply_now(context, APPLY) if undone else Applied(True)
    return Consolidation([_merge_of(row) for row in undone], applied)


def undo_merge(context: Context, memory_id: str) -> Consolidation:
    """Undo the merge that a memory is from. Raises UsageError if it is from none that still holds."""
    store = context.open_store()
    journal = store.journal.read().to_pylist()
    own = [row for row in journal if row["memory_id"] == memory_id]
    known = [row for row in own if row["kind"] == Merge.kind]
    if not known or any(row["kind"] == Unmerge.kind for row in own):
        raise UsageError(f"{memory_id[:12]} is not from a merge.", "There is nothing to undo.")
    row = known[-1]
    entry = Unmerge().to_row(row["project_id"], recorded_at=context.now, memory_id=memory_id)
    store.journal.write(entry)
    return Consolidation([_merge_of(row)], apply_now(context, APPLY))


def _merge_rows(store: Store) -> list[Row]:
    return [row for row in store.journal.read().to_pylist() if row["kind"] == Merge.kind]


def _merge_of(row: Row, texts: dict[str, str] | None = None) -> MemoryMerge:
    entry = from_row(row)
    assert isinstance(entry, Merge)
    members = entry.members
    return MemoryMerge(
        row["memory_id"],
        row["project_id"],
        members,
        entry.text,
        [texts[member] for member in members] if texts else (),
        entry.memory_type,
    )
