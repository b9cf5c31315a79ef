"""The commands about one memory: `edit`, `pin`, `confirm`, `supersede`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.transforms.errors import UsageError
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from cortex.flows.context.context import Context

SHOWN_CHARS = 80


@command("edit", "Change a memory's text.", place=30)
@click.argument("memory")
@click.argument("text", nargs=-1, required=True)
def edit(context: Context, memory: str, text: tuple[str, ...]) -> Answer:
    """Change the text of MEMORY (an id) to TEXT; its age and evidence stay.

    The old text stays in the journal. To erase it, use forget.
    """
    from cortex.flows.operations.change import edit

    change = edit.edit(context, memory, " ".join(text))
    data = {"id": change.memory_id, "text": change.text, "applied": change.applied.is_in_effect}
    line = f"{change.memory_id[:12]} now says: {excerpt(change.text, SHOWN_CHARS)}"
    return Answer(data, [line], warnings=change.applied.warnings)


@command("pin", "Protect a memory from fading and merging.", place=40)
@click.argument("memory")
@click.option("--off", is_flag=True, help="Let it fade and be merged again.")
def pin(context: Context, memory: str, off: bool) -> Answer:
    """Protect MEMORY (an id) from fading and from being merged."""
    from cortex.flows.operations.change import edit

    change = edit.unpin(context, memory) if off else edit.pin(context, memory)
    data = {"id": change.memory_id, "pinned": not off, "applied": change.applied.is_in_effect}
    state = "fades again as others do" if off else "neither fades nor is merged"
    line = f"{change.memory_id[:12]} {state}: {excerpt(change.text, SHOWN_CHARS)}"
    return Answer(data, [line], warnings=change.applied.warnings)


@command("confirm", "Confirm that a memory still holds.", place=50)
@click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")
def confirm(context: Context, memories: tuple[str, ...]) -> Answer:
    """Confirm that each MEMORY (an id) still holds: it counts as said again today.

    Every tenth brief of a project asks about the oldest claims that it shows.
    """
    from cortex.flows.operations.change import edit

    changes = edit.confirm(context, memories)
    data = {
        "confirmed": [{"id": change.memory_id, "text": change.text} for change in changes],
        "applied": changes[0].applied.is_in_effect,
    }
    lines = [
        f"{change.memory_id[:12]} still holds: {excerpt(change.text, SHOWN_CHARS)}" for change in changes
    ]
    return Answer(data, lines, warnings=changes[0].applied.warnings)


@command("supersede", "Replace one memory with another.", place=60)
@click.argument("old")
@click.argument("new", required=False)
@click.option("--undo", is_flag=True, help="Show OLD again, as if nothing had replaced it.")
def supersede(context: Context, old: str, new: str | None, undo: bool) -> Answer:
    """Replace the memory OLD with NEW (ids); OLD is no longer shown."""
    from cortex.flows.operations.change import edit

    if undo == (new is not None):
        raise UsageError("Give two ids, or one with --undo.", "cortex supersede OLD NEW, or --undo OLD")
    if new is None:
        change = edit.undo_supersede(context, old)
        data = {"id": change.memory_id, "superseded_by": None, "applied": change.applied.is_in_effect}
        line = f"Shown again: {change.memory_id[:12]} {excerpt(change.text, SHOWN_CHARS)}"
        return Answer(data, [line], warnings=change.applied.warnings)
    replacement = edit.supersede(context, old, new)
    return Answer(
        {
            "id": replacement.old_id,
            "superseded_by": replacement.new_id,
            "applied": replacement.applied.is_in_effect,
        },
        [
            f"No longer shown: {replacement.old_id[:12]} {excerpt(replacement.old_text, SHOWN_CHARS)}",
            f"In its place:    {replacement.new_id[:12]} {excerpt(replacement.new_text, SHOWN_CHARS)}",
        ],
        warnings=replacement.applied.warnings,
    )
