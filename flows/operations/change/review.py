"""The review: contradictions, stale claims and proposed merges, and a person's decision on each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cortex.flows.context.context import Context
from cortex.flows.engines.runs import looking
from cortex.flows.operations.change.apply import Applied, apply_now
from cortex.flows.operations.lookup.ids import LEAST_ID_CHARS, several, typed_id
from cortex.flows.operations.lookup.targets import projects_of
from cortex.flows.publishing.repository_doubts import doubts_about
from cortex.flows.run.run import Run
from cortex.flows.run.verdicts import same_statements_in
from cortex.flows.stages.order import APPLY
from cortex.storage.projects.projects import Project
from cortex.transforms.errors import NotFound
from cortex.transforms.journal_entries import Archive, Supersede
from cortex.transforms.memory.consolidate import propose
from cortex.transforms.views.review import (
    CONTRADICTION,
    MERGE,
    Item,
    dismissal,
    disputes,
    merges,
    stale_claims,
    unsettled,
)


@dataclass(frozen=True)
class ProjectReview:
    """What a person may settle of one project."""

    project: Project
    items: Sequence[Item]


@dataclass(frozen=True)
class Settlement:
    """The items that were accepted and those that were left for good."""

    accepted: Sequence[Item]
    kept: Sequence[Item]
    applied: Applied


def review(context: Context, *, project: str | None = None) -> list[ProjectReview]:
    """Return what a person may settle, by project: those called `project`, else the folder's, else all."""
    run = looking(context)
    projects = projects_of(context, context.open_store(), project)
    return [ProjectReview(each, _items(run, each.project_id)) for each in projects]


def settle_items(
    context: Context,
    *,
    accept: Sequence[Item | str] = (),
    keep: Sequence[Item | str] = (),
    project: str | None = None,
) -> Settlement:
    """
    Do what the items of `accept` offer, and leave those of `keep` as they are for good.

    An item is one of `review`, or the beginning of its id. Accepted, the newer decision takes the older one's
    place, the stale claim is archived, the memories are merged. Raises NotFound; UsageError for several.
    """
    reviews = review(context, project=project) if any(isinstance(i, str) for i in (*accept, *keep)) else []
    items = [item for each in reviews for item in each.items]
    accepted = [_item_of(item, items) if isinstance(item, str) else item for item in accept]
    kept = [_item_of(item, items) if isinstance(item, str) else item for item in keep]
    journal, at = context.open_store().journal, context.now
    for item in accepted:
        journal.write(_acceptance(item, at))
    for item in kept:
        journal.write(dismissal(item).to_row(item.project_id, recorded_at=at))
    applied = apply_now(context, APPLY) if accepted or kept else Applied(True)
    return Settlement(accepted, kept, applied)


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
    return unsettled(items, journal)


def _item_of(name: str, items: Sequence[Item]) -> Item:
    matches = [item for item in items if item.item_id.startswith(typed_id(name))]
    if len(name) < LEAST_ID_CHARS or not matches:
        problem = f"the review has no item whose id begins with '{name}'."
        raise NotFound(problem, f"cortex review lists them; give at least {LEAST_ID_CHARS} characters.")
    if len(matches) > 1:
        raise several(name, "items", {item.item_id: f"{item.kind}: {item.offer}" for item in matches})
    return matches[0]


def _acceptance(item: Item, at: datetime) -> dict[str, object]:
    if item.kind == MERGE:
        assert item.entry is not None
        return item.entry
    entry = Supersede(item.memory_ids[1]) if item.kind == CONTRADICTION else Archive(item.detail)
    return entry.to_row(item.project_id, recorded_at=at, memory_id=item.memory_ids[0])
