"""The commands `review`, `consolidate` and `checkpoint`: what is in dispute, and what says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import PROJECT_OPTION, Answer, command, prints_json
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import counted
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cortex.flows.context import Context
    from cortex.flows.operations.edit.review import MemoryMerge, ProjectReview, Resolution
    from cortex.transforms.views.review import Item


ID_DIGITS = 8  # of some hundred items two agree in so many once in 400,000 reviews
PLURALS = {
    "contradiction": "contradictions", "stale": "stale claims", "merge": "merge proposals",
    "global": "wishes for every project",
}  # fmt: skip
BY_MODEL = {
    "proposed_by_model": "the newer one holds",
    "unsure_by_model": "it cannot tell which of the two holds",
}
MARKS = {"contradiction": ("older: ", "newer: "), "stale": ("claim: ",)}


@command("review", "Resolve contradictions, stale claims and proposed merges.", place=70)
@click.option("--accept", metavar="ID", multiple=True, help="Accept the item with this ID; repeatable.")
@click.option(
    "--keep", metavar="ID", multiple=True, help="Leave the item as it is and never ask again; repeatable."
)
@click.option("--reopen", metavar="ID", help="Undo a --keep: the item is listed again.")
@click.option("--ask", is_flag=True, help="Ask about each item in turn.")
@PROJECT_OPTION
def review(
    context: Context,
    accept: tuple[str, ...],
    keep: tuple[str, ...],
    reopen: str | None,
    ask: bool,
    project: str | None,
) -> Iterator[Answer]:
    """List items to resolve: contradictions, stale claims, memories that could be merged or hold everywhere.

    If you accept an item, the newer decision replaces the older one, the stale claim is archived, the
    memories are merged, or the wish holds in every project.
    """
    from cortex.flows.operations.edit import review

    if ask and (accept or keep or reopen or prints_json()):
        raise UsageError(
            "--ask cannot be combined with other options.", "Give --ask, or ids with --accept and --keep."
        )
    if reopen is not None:
        if accept or keep:
            raise UsageError("--reopen cannot be combined with --accept and --keep.", "Give one of them.")
        applied = review.reopen(context, reopen, project=project)
        lines = [f"{reopen} is listed again: cortex review"]
        yield Answer({"applied": applied.is_in_effect}, lines, warnings=applied.warnings)
        return
    if accept or keep:
        yield _resolved(review.resolve_items(context, accept=accept, keep=keep, project=project))
        return
    reviews = review.review(context, project=project)
    if not ask:
        yield _listed(reviews)
        return
    accepted: list[Item] = []
    kept: list[Item] = []
    items = [item for each in reviews for item in each.items]
    for number, item in enumerate(items, start=1):
        yield Answer({}, _item_lines(item))
        choices = click.Choice(["accept", "keep", "skip", "quit"])
        choice = click.prompt(f"  {number} of {len(items)}", type=choices, default="skip")
        if choice == "quit":
            break
        if choice != "skip":
            (accepted if choice == "accept" else kept).append(item)
    yield _resolved(review.resolve_items(context, accept=accepted, keep=kept))


def _resolved(resolution: Resolution) -> Answer:
    data = {
        "accepted": [item.item_id for item in resolution.accepted],
        "kept": [item.item_id for item in resolution.kept],
        "applied": resolution.applied.is_in_effect,
    }
    lines = [f"Accepted {item.item_id[:ID_DIGITS]}: {item.offer}." for item in resolution.accepted]
    lines += [f"Kept {item.item_id[:ID_DIGITS]} as it is." for item in resolution.kept]
    back = [f"Take it back: cortex review --reopen {item.item_id[:ID_DIGITS]}" for item in resolution.kept]
    return Answer(data, lines or ["Nothing resolved."], back, warnings=resolution.applied.warnings)


def _listed(reviews: Sequence[ProjectReview]) -> Answer:
    busy = [each for each in reviews if each.items]
    lines = [line for each in (reviews if len(reviews) == 1 else busy) for line in _review_lines(each)]
    if len(busy) < len(reviews) > 1:
        idle = len(reviews) - len(busy)
        lines.append(f"Nothing to settle in {counted(idle, 'other project' if busy else 'project')}.")
    how = "Settle one: cortex review --accept ID, or --keep ID to leave it for good; one by one: --ask"
    hints = [how] if busy else []
    return Answer({"projects": [_as_dict(each) for each in reviews]}, lines, hints)


def _as_dict(review: ProjectReview) -> dict[str, object]:
    return {
        "project_id": review.project.project_id,
        "project": review.project.label,
        "items": [
            {
                "id": item.item_id,
                "kind": item.kind,
                "memory_ids": list(item.memory_ids),
                "texts": list(item.texts),
                "offer": item.offer,
                "detail": item.detail,
                "is_by_model": item.is_by_model,
            }
            for item in review.items
        ],
    }


def _review_lines(review: ProjectReview) -> Iterator[str]:
    counts = [f"{sum(i.kind == kind for i in review.items)} {plural}" for kind, plural in PLURALS.items()]
    yield f"{review.project.label}: {', '.join(counts)}"
    for item in review.items:
        yield from _item_lines(item)


def _item_lines(item: Item) -> Iterator[str]:
    yield f"\n  [{item.item_id[:ID_DIGITS]}] {item.kind}: if accepted, {item.offer}"
    marks = MARKS.get(item.kind, ("- ",) * len(item.texts))
    for mark, memory_id, text in zip(marks, item.memory_ids, item.texts, strict=True):
        yield f"      {mark}{excerpt(text)} [{memory_id[:6]}]"
    if item.is_by_model:
        says = "it holds everywhere" if item.kind == "global" else "they say the same"
        yield f"      by:    the language model: {BY_MODEL.get(item.detail, says)}"
    if item.kind == "stale":
        yield f"      but:   {item.detail}"
    if item.kind in ("merge", "global"):
        yield f"      into:  {excerpt(item.detail)}"


@command("consolidate", "Merge memories that say the same, or undo a merge.", place=80)
@click.option("--dry-run", is_flag=True, help="Show what would be merged, without merging.")
@click.option("--undo", is_flag=True, help="Undo the last consolidation.")
@click.option("--to", "name", metavar="NAME", help="With --undo: undo everything since this checkpoint.")
def consolidate(context: Context, dry_run: bool, undo: bool, name: str | None) -> Answer:
    """Merge memories that say the same; the originals are archived."""
    from cortex.flows.operations.edit import review as merges_operation

    if (dry_run and undo) or (name is not None and not undo):
        raise UsageError("--dry-run and --undo cannot be combined; --to needs --undo.", "Give one of them.")
    if undo:
        undone = merges_operation.undo_merges(context, name)
        return Answer(
            {"undone": [_consolidate_as_dict(merge) for merge in undone.merges]},
            [f"{len(undone.merges)} merges undone; their members are as they were."],
            warnings=undone.applied.warnings,
        )
    if dry_run:
        return _proposed(merges_operation.propose_merges(context))
    consolidation = merges_operation.merge_duplicates(context)
    merges = consolidation.merges
    lines = [f"{m.project_id}: {len(m.members)} became one: {m.text}  [{m.memory_id[:12]}]" for m in merges]
    lines.append(f"{len(merges)} merges." + (" To undo them: cortex consolidate --undo" if merges else ""))
    return Answer(
        {"merged": [_consolidate_as_dict(merge) for merge in merges]},
        lines,
        warnings=consolidation.applied.warnings,
    )


def _proposed(proposals: list[MemoryMerge]) -> Answer:
    lines: list[str] = []
    for merge in proposals:
        lines.append(f"{merge.project_id}: {len(merge.members)} become one: {merge.text}")
        lines += [f"    - {text}" for text in merge.texts]
    lines.append(f"{len(proposals)} merges proposed; nothing was changed.")
    return Answer(
        {"proposals": [{**_consolidate_as_dict(merge), "texts": list(merge.texts)} for merge in proposals]},
        lines,
    )


def _consolidate_as_dict(merge: MemoryMerge) -> dict[str, object]:
    return {
        "id": merge.memory_id,
        "project_id": merge.project_id,
        "members": list(merge.members),
        "text": merge.text,
    }


@command("checkpoint", "Save a point that you can undo merges back to.", place=90)
@click.argument("name")
def checkpoint(context: Context, name: str) -> Answer:
    """Save a point with this NAME, to which `consolidate --undo --to NAME` returns."""
    from cortex.flows.operations.edit import review as merges

    moment = merges.checkpoint(context, name)
    return Answer(
        {"checkpoint": moment.name, "at": moment.at.isoformat()},
        [f"Checkpoint '{name}'. To return to it: cortex consolidate --undo --to '{name}'"],
    )
