"""What a person settles: contradictions, stale claims, merges, and which wishes hold in every project."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.edit.apply import Applied, apply_now
from cortex.flows.operations.ids import MIN_ID_CHARS, begun_by
from cortex.flows.operations.lookup import memory_of, projects_of
from cortex.flows.publishing.briefs import doubts_about
from cortex.flows.run.model_replies import same_statements_in
from cortex.flows.run.run import Run
from cortex.flows.stages.order import APPLY, CONSOLIDATE
from cortex.storage.projects.projects import Project
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, PlanOutdated, UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import (
    Archive,
    Checkpoint,
    Dismiss,
    Merge,
    Supersede,
    Unmerge,
    from_row,
)
from cortex.transforms.memory.consolidate import propose, to_undo
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import GLOBAL_SCOPE, JOURNAL, Row, values
from cortex.transforms.views.review import (
    CONTRADICTION,
    EVERYWHERE,
    MERGE,
    Item,
    dismissal,
    dismissed,
    disputes,
    global_memory,
    global_proposals,
    merges,
    stale_claims,
    unresolved,
    without_declined,
)

# -- Merges memories that say the same, proposes that, undoes it; names a moment to return to.


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
    run = read_only_run(context)
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


# -- The review: contradictions, stale claims and proposed merges, and a person's decision on each.


@dataclass(frozen=True)
class ProjectReview:
    """The items of one project that a person may resolve."""

    project: Project
    items: Sequence[Item]


@dataclass(frozen=True)
class Resolution:
    """The items that were accepted and those that were left for good."""

    accepted: Sequence[Item]
    kept: Sequence[Item]
    applied: Applied


def review(context: Context, *, project: str | None = None) -> list[ProjectReview]:
    """Return the items that a person may resolve, by project: those called `project`, else the folder's,
    else all."""
    run = read_only_run(context)
    projects = projects_of(context, context.open_store(), project)
    everywhere = _proposals_for_all(context, run)
    reviews: list[ProjectReview] = []
    for each in projects:
        items = _items(run, each.project_id)
        # Of the projects that have it, the first that is looked at shows it.
        own = [item for item in everywhere if each.project_id in item.projects]
        everywhere = [item for item in everywhere if item not in own]
        reviews.append(ProjectReview(each, [*items, *(item.item for item in own)]))
    return reviews


def resolve_items(
    context: Context,
    *,
    accept: Sequence[Item | str] = (),
    keep: Sequence[Item | str] = (),
    project: str | None = None,
) -> Resolution:
    """
    Do what the items of `accept` offer, and leave those of `keep` as they are for good.

    An item is one of `review`, or the beginning of its id. Accepted, the newer decision takes the older one's
    place, the stale claim is archived, the memories are merged, or become one of all projects. Raises
    NotFound; UsageError for several.
    """
    reviews = review(context, project=project) if any(isinstance(i, str) for i in (*accept, *keep)) else []
    items = [item for each in reviews for item in each.items]
    accepted = [_item_of(item, items) if isinstance(item, str) else item for item in accept]
    kept = [_item_of(item, items) if isinstance(item, str) else item for item in keep]
    journal, at = context.open_store().journal, context.now
    rows: list[dict[str, object]] = []
    for item in accepted:
        rows += _global_entries(context, item) if item.kind == EVERYWHERE else [_acceptance(item, at)]
    for item in kept:
        scope = GLOBAL_SCOPE if item.kind == EVERYWHERE else item.project_id
        rows.append(dismissal(item).to_row(scope, recorded_at=at))
    if rows:
        journal.write(*rows)
    applied = apply_now(context, APPLY) if rows else Applied(True)
    return Resolution(accepted, kept, applied)


def reopen(context: Context, name: str, *, project: str | None = None) -> Applied:
    """
    Let an item that was left as it is come up again; `name` is the beginning of its id.

    Raises NotFound; UsageError for several.
    """
    run = read_only_run(context)
    left: dict[str, tuple[str, Dismiss]] = {}
    projects = projects_of(context, context.open_store(), project)
    # What may hold everywhere is declined for all projects at once.
    for scope in (*(each.project_id for each in projects), GLOBAL_SCOPE):
        entries = dismissed(run.readings.merged_journal(scope))
        left |= {item_id: (scope, entry) for item_id, entry in entries.items()}
    texts = {item_id: str(entry.item) for item_id, (_, entry) in left.items()}
    problem = f"no kept item has an ID that begins with '{name}'."
    missing = NotFound(problem, "Use the ID that you gave to `cortex review --keep`.")
    item_id = begun_by(name, texts, "items", missing)
    scope, _ = left[item_id]
    # Each project that was joined may have left it, under its own names: they hold when it is split off.
    noted = zip(
        run.readings.journal(scope).to_pylist(), run.readings.merged_journal(scope).to_pylist(), strict=True
    )
    rows = [
        replace(entry, is_withdrawn=True).to_row(own["project_id"], recorded_at=context.now)
        for own, whole in noted
        if item_id in dismissed(JOURNAL.of([whole])) and isinstance(entry := from_row(own), Dismiss)
    ]
    context.open_store().journal.write(*{row["entry_id"]: row for row in rows}.values())
    return apply_now(context, APPLY)


def _items(run: Run, scope: str) -> list[Item]:
    tables = run.store.tables
    memories, edges = tables.open(scope, "memories").read(), tables.open(scope, "edges").read()
    journal = run.readings.merged_journal(scope)
    same = same_statements_in(run, scope, memories)
    proposed = propose(
        memories,
        run.readings.vectors(),
        run.policy,
        run.embedding.model,
        run.now,
        "user",
        undone=journal,
        same=same,
        is_reviewed=True,
    )
    items = [
        *disputes(memories, edges, run.policy),
        *stale_claims(memories, doubts_about(run, scope, memories)),
        *merges(memories, proposed, same.pairs),
    ]
    return unresolved(items, journal)


@dataclass(frozen=True)
class _Proposal:
    """What may hold in every project, and the projects in which it is said."""

    item: Item
    projects: frozenset[str]


def _proposals_for_all(context: Context, run: Run) -> list[_Proposal]:
    where = {"status": ["active"], "trust": ["user"]}
    scopes = [scope for scope in run.store.tables.scopes() if context.sees(scope)]
    tables = [run.store.tables.open(scope, "memories").read(where=where) for scope in scopes]
    if not tables:
        return []
    memories = pa.concat_tables(tables)
    scope_of = dict(zip(values(memories, "memory_id"), values(memories, "project_id"), strict=True))
    items = without_declined(
        global_proposals(memories, run.policy), run.readings.merged_journal(GLOBAL_SCOPE)
    )
    return [_Proposal(item, frozenset(scope_of[name] for name in item.memory_ids)) for item in items]


def _global_entries(context: Context, item: Item) -> list[dict[str, object]]:
    """Return the entries by which a wish holds everywhere, and takes the place of it in its projects."""
    store, at = context.open_store(), context.now
    members = [memory_of(context, store, name) for name in item.memory_ids]
    entry = global_memory(members, item.detail)
    name = memory_id(GLOBAL_SCOPE, entry.memory_type, entry.text)
    rows = [entry.to_row(GLOBAL_SCOPE, recorded_at=at, memory_id=name)]
    for row in members:
        replaced = Supersede(name)
        rows.append(replaced.to_row(row["project_id"], recorded_at=at, memory_id=row["memory_id"]))
    return rows


def _item_of(name: str, items: Sequence[Item]) -> Item:
    texts = {item.item_id: f"{item.kind}: {item.offer}" for item in items}
    problem = f"the review has no item whose id begins with '{name}'."
    missing = NotFound(problem, f"cortex review lists them; give at least {MIN_ID_CHARS} characters.")
    whole = begun_by(name, texts, "items", missing)
    return next(item for item in items if item.item_id == whole)


def _acceptance(item: Item, at: datetime) -> dict[str, object]:
    if item.kind == MERGE:
        assert item.entry is not None
        return item.entry
    entry = Supersede(item.memory_ids[1]) if item.kind == CONTRADICTION else Archive(item.detail)
    return entry.to_row(item.project_id, recorded_at=at, memory_id=item.memory_ids[0])
