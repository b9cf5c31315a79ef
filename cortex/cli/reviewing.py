"""The review: contradictions, stale claims and merges proposed, and a person's word on each."""

from collections.abc import Sequence

from cortex.cli.memories import SHORTEST_ID, apply_now, open_store
from cortex.cli.present import present
from cortex.cli.reading import projects_meant, shortened
from cortex.cli.terminal import hint, now, print_json, say
from cortex.flows.repository_doubts import doubts_about
from cortex.flows.run import Run
from cortex.flows.runs import looking
from cortex.flows.stages.order import APPLY
from cortex.storage.projects import Project
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Archive, Supersede
from cortex.transforms.memory.consolidate import propose
from cortex.transforms.memory.review import (
    CONTRADICTION,
    MERGE,
    STALE,
    Item,
    dismissal,
    disputes,
    merges,
    stale_claims,
    unsettled,
)

ID_DIGITS = 8  # of some hundred items two agree in so many once in 400,000 reviews
HEADINGS = {CONTRADICTION: "contradictions", STALE: "stale claims", MERGE: "merge proposals"}
MARKS = {CONTRADICTION: ("older: ", "newer: "), STALE: ("claim: ",)}


def review(
    project: str | None, *, accept: Sequence[str], keep: Sequence[str], ask: bool, as_json: bool
) -> None:
    """List what a person may settle, or settle it: by id, or one after another at the terminal."""
    run = looking(present())
    meant = projects_meant(open_store(), project)
    found = {one.project_id: _items(run, one.project_id) for one in meant}
    everything = [item for items in found.values() for item in items]
    if accept or keep:
        accepted = [_named(name, everything) for name in accept]
        kept = [_named(name, everything) for name in keep]
        return _settle(run, accepted, kept, as_json=as_json)
    if ask:
        return _settle(run, *_asked(everything), as_json=as_json)
    if as_json:
        return print_json({"projects": [_as_dict(one, found[one.project_id]) for one in meant]})
    for one in meant:
        _print(one, found[one.project_id])
    if everything:
        hint("Settle one: cortex review --accept ID, or --keep ID to leave it for good; all by turns: --ask")
    return None


def _items(run: Run, scope: str) -> list[Item]:
    tables = run.store.tables
    memories, edges = tables.open(scope, "memories").read(), tables.open(scope, "edges").read()
    journal = run.readings.journal_in_one(scope)
    proposed = propose(
        memories, run.readings.vectors(), run.policy, run.embedding.model, run.now, "user", undone=journal
    )
    items = [
        *disputes(memories, edges),
        *stale_claims(memories, doubts_about(run, scope, memories)),
        *merges(memories, proposed),
    ]
    return unsettled(items, journal)


def _named(name: str, items: Sequence[Item]) -> Item:
    found = [item for item in items if item.item_id.startswith(name.lower())]
    if len(name) < SHORTEST_ID or not found:
        raise NotFound(f"the review has no item {name}.", "cortex review lists them; give 6 characters.")
    if len(found) > 1:
        raise UsageError(f"{len(found)} items begin with {name}.", "Give more of the id.")
    return found[0]


def _asked(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Return what a person accepts and what they keep, asked one after another."""
    import click

    accepted: list[Item] = []
    kept: list[Item] = []
    for number, item in enumerate(items, start=1):
        _print_item(item)
        answers = click.Choice(["accept", "keep", "skip", "quit"])
        answer = click.prompt(f"  {number} of {len(items)}", type=answers, default="skip")
        if answer == "quit":
            break
        if answer != "skip":
            (accepted if answer == "accept" else kept).append(item)
    return accepted, kept


def _settle(run: Run, accepted: list[Item], kept: list[Item], *, as_json: bool) -> None:
    """Journal what was decided, and let it take effect."""
    for item in accepted:
        run.store.journal.write(_acceptance(item))
    for item in kept:
        run.store.journal.write(dismissal(item).to_row(item.project_id, recorded_at=now()))
    applied = apply_now(APPLY) if accepted or kept else True
    if as_json:
        told = {
            name: [item.item_id for item in items] for name, items in (("accepted", accepted), ("kept", kept))
        }
        return print_json({**told, "applied": applied})
    for item in accepted:
        say(f"Accepted {item.item_id[:ID_DIGITS]}: {item.offer}.")
    for item in kept:
        say(f"Kept {item.item_id[:ID_DIGITS]} as it is.")
    if not accepted and not kept:
        say("Nothing settled.")
    return None


def _acceptance(item: Item) -> dict[str, object]:
    at, first = now(), item.memory_ids[0]
    if item.kind == CONTRADICTION:
        entry = Supersede(item.memory_ids[1])
        return entry.to_row(item.project_id, recorded_at=at, memory_id=first)
    if item.kind == STALE:
        return Archive(item.detail).to_row(item.project_id, recorded_at=at, memory_id=first)
    assert item.entry is not None
    return item.entry


def _as_dict(project: Project, items: list[Item]) -> dict[str, object]:
    return {
        "project_id": project.project_id,
        "project": project.name,
        "items": [
            {
                "id": item.item_id,
                "kind": item.kind,
                "memory_ids": list(item.memory_ids),
                "texts": list(item.texts),
                "offer": item.offer,
                "detail": item.detail,
            }
            for item in items
        ],
    }


def _print(project: Project, items: list[Item]) -> None:
    counts = {kind: sum(item.kind == kind for item in items) for kind in HEADINGS}
    say(f"{project.name}: " + ", ".join(f"{count} {HEADINGS[kind]}" for kind, count in counts.items()))
    for item in items:
        _print_item(item)


def _print_item(item: Item) -> None:
    say(f"\n  [{item.item_id[:ID_DIGITS]}] {item.kind}: if accepted, {item.offer}")
    marks = MARKS.get(item.kind, ("- ",) * len(item.texts))
    for mark, name, text in zip(marks, item.memory_ids, item.texts, strict=True):
        say(f"      {mark}{shortened(text)} [{name[:6]}]")
    if item.kind == STALE:
        say(f"      but:   {item.detail}")
    if item.kind == MERGE:
        say(f"      into:  {shortened(item.detail)}")
