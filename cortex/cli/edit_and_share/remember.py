"""The commands that say or change one memory: `remember`, `learn`, `edit`, `pin`, `confirm`, `supersede`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import PROJECT_OPTION, Answer, can_ask, command, say
from cortex.transforms.errors import UsageError
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.flows.operations.edit.remember import Learned, Remembered


@command("remember", "Store a fact in your own words.", place=10)
@click.argument("text", nargs=-1, required=True)
@click.option("--type", "memory_type", default="context", show_default=True, help="Memory type.")
@click.option(
    "--priority", type=click.IntRange(1, 10), default=5, show_default=True, help="Weight in the ranking."
)
@click.option("--global", "is_global", is_flag=True, help="The memory holds for every project.")
@click.option("--pin", "is_pinned", is_flag=True, help="Never let it fade or be merged.")
@PROJECT_OPTION
def remember(
    context: Context,
    text: tuple[str, ...],
    memory_type: str,
    priority: int,
    is_global: bool,
    is_pinned: bool,
    project: str | None,
) -> Answer:
    """Store a fact in your own words. A known fact is reinforced; text without content is refused.

    At a terminal you are asked whether it takes the place of what it contradicts; otherwise both are kept.
    """
    from cortex.flows.operations.edit import remember
    from cortex.flows.operations.lookup import is_outside

    is_new = is_outside(context, project, all_projects=is_global)
    memory = remember.remember(
        context,
        " ".join(text),
        memory_type=memory_type,
        priority=priority,
        is_global=is_global,
        is_pinned=is_pinned,
        project=project,
    )
    replaced = [name for name, words in memory.contradicts.items() if _takes_place_of(words)]
    for name in replaced:
        remember.supersede(context, name, memory.memory_id)
    data = {
        "id": memory.memory_id,
        "project": memory.project,
        "searchable": memory.applied.is_in_effect,
        "outcome": memory.outcome,
        "contradicts": [name for name in memory.contradicts if name not in replaced],
        "replaced": replaced,
        "redacted": memory.redacted,
    }
    lines = [_sentence(memory), *(f"In place of {name[:12]}." for name in replaced)]
    warnings = memory.applied.warnings
    if memory.redacted:
        secrets = "A secret was" if memory.redacted == 1 else f"{memory.redacted} secrets were"
        warnings = [
            *warnings,
            f"{secrets} taken out of it: Cortex keeps none. To see it: cortex show {memory.memory_id[:12]}",
        ]
    hints = [_new_project(memory.project)] * is_new + _both_kept(memory, replaced)
    return Answer(data, lines, hints, warnings)


def _new_project(name: str) -> str:
    return f"This folder is now the project {name}; --global is for all projects, --project NAME for another."


def _takes_place_of(words: str) -> bool:
    """Return whether a person at the terminal says that the new words replace these."""
    if not can_ask():
        return False
    click.echo(f"It contradicts: {excerpt(words, 160)}")
    return click.confirm("Does the new one take its place?", default=True)


def _both_kept(memory: Remembered, replaced: list[str]) -> list[str]:
    left = [words for name, words in memory.contradicts.items() if name not in replaced]
    return [f"It contradicts “{excerpt(left[0], SHOWN_CHARS)}”; both are kept: cortex review"] if left else []


def _sentence(memory: Remembered) -> str:
    label = f"{memory.memory_id[:12]} ({memory.memory_type}, {memory.project})"
    if memory.outcome == "reinforced":
        return f"Known already as {label}, which is reinforced."
    return f"Remembered as {label}" + (
        ", in place of its shorter words." if memory.outcome == "reworded" else "."
    )


@command("learn", "Store a lesson, if it meets the quality rules.", place=20)
@click.argument("text", nargs=-1, required=True)
@click.option("--type", "memory_type", default="context", show_default=True, help="Memory type.")
@click.option("--global", "is_global", is_flag=True, help="The memory holds for every project.")
@click.option("--anyway", is_flag=True, help="Store it even if it contradicts an active decision.")
@click.option(
    "--evidence",
    multiple=True,
    metavar="FILE",
    help="File that proves it, relative to the project; repeatable.",
)
@click.option(
    "--by-assistant",
    is_flag=True,
    help="Mark it as the assistant's own finding, trusted according to its wording.",
)
@PROJECT_OPTION
def learn(
    context: Context,
    text: tuple[str, ...],
    memory_type: str,
    is_global: bool,
    anyway: bool,
    evidence: tuple[str, ...],
    by_assistant: bool,
    project: str | None,
) -> Answer:
    """Store a lesson, if it is new, specific and understandable on its own.

    Refuses, with the reason, questions, filler, text that is too short or holds a secret, and what
    contradicts an active decision (unless --anyway). A known lesson is reinforced.
    """
    from cortex.flows.operations.edit import remember as learn
    from cortex.flows.operations.lookup import is_outside

    if by_assistant and is_global:
        raise UsageError(
            "what an assistant found out holds in one project.",
            "A person says what holds everywhere: leave out --by-assistant",
        )
    is_new = is_outside(context, project, all_projects=is_global)
    learned = learn.learn(
        context,
        " ".join(text),
        memory_type=memory_type,
        is_global=is_global,
        anyway=anyway,
        project=project,
        files=evidence,
        by_assistant=by_assistant,
    )
    data = {
        "id": learned.memory_id,
        "project": learned.project,
        "memory_type": learned.memory_type,
        "text": learned.text,
        "outcome": learned.outcome,
        "contradicts": list(learned.contradicts),
        "searchable": learned.applied.is_in_effect,
    }
    hints = [_new_project(learned.project)] if is_new else []
    hints += ["It contradicts an active decision: cortex review"] if learned.contradicts else []
    return Answer(data, [_learn_sentence(learned)], hints, learned.applied.warnings)


def _learn_sentence(learned: Learned) -> str:
    label = f"{learned.memory_id[:12]} ({learned.memory_type}, {learned.project})"
    if learned.outcome == "reinforced":
        return f"Known already as {label}, which is reinforced: {excerpt(learned.text, 160)}"
    return f"Learned as {label}" + (
        ", in place of its shorter words." if learned.outcome == "reworded" else "."
    )


SHOWN_CHARS = 80


@command("edit", "Change a memory's text.", place=30)
@click.argument("memory")
@click.argument("text", nargs=-1, required=True)
def edit(context: Context, memory: str, text: tuple[str, ...]) -> Answer:
    """Change the text of MEMORY (an id) to TEXT; its age and evidence stay.

    The old text stays in the journal. To erase it, use forget.
    """
    from cortex.flows.operations.edit import remember as edit

    change = edit.edit(context, memory, " ".join(text))
    data = {"id": change.memory_id, "text": change.text, "applied": change.applied.is_in_effect}
    line = f"{change.memory_id[:12]} now says: {excerpt(change.text, SHOWN_CHARS)}"
    return Answer(data, [line], warnings=change.applied.warnings)


@command("pin", "Protect a memory from fading and merging.", place=40)
@click.argument("memory")
@click.option("--off", is_flag=True, help="Let it fade and be merged again.")
def pin(context: Context, memory: str, off: bool) -> Answer:
    """Protect MEMORY (an id) from fading and from being merged."""
    from cortex.flows.operations.edit import remember as edit

    change = edit.unpin(context, memory) if off else edit.pin(context, memory)
    data = {"id": change.memory_id, "pinned": not off, "applied": change.applied.is_in_effect}
    state = "fades again as others do" if off else "neither fades nor is merged"
    line = f"{change.memory_id[:12]} {state}: {excerpt(change.text, SHOWN_CHARS)}"
    hints = [] if off else [f"Undo: cortex pin --off {change.memory_id[:12]}"]
    return Answer(data, [line], hints, change.applied.warnings)


@command("confirm", "Confirm that a memory still holds.", place=50)
@click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")
def confirm(context: Context, memories: tuple[str, ...]) -> Answer:
    """Confirm that each MEMORY (an id) still holds: it counts as said again today.

    Every tenth brief of a project asks about the oldest claims that it shows.
    """
    from cortex.flows.operations.edit import remember as edit

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
    from cortex.flows.operations.edit import remember as edit

    if undo == (new is not None):
        raise UsageError("Give two ids, or one with --undo.", "cortex supersede OLD NEW, or --undo OLD")
    if new is None:
        change = edit.undo_supersede(context, old)
        data = {"id": change.memory_id, "superseded_by": None, "applied": change.applied.is_in_effect}
        line = f"Shown again: {change.memory_id[:12]} {excerpt(change.text, SHOWN_CHARS)}"
        return Answer(data, [line], warnings=change.applied.warnings)
    if can_ask() and (unrelated := edit.unrelated(context, old, new)):
        say(f"Old: {excerpt(unrelated[0], SHOWN_CHARS)}\nNew: {excerpt(unrelated[1], SHOWN_CHARS)}")
        if not click.confirm("The two have no word in common. Replace the old one all the same?"):
            return Answer({"id": old, "superseded_by": None}, ["Nothing was changed."])
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
        [f"Undo: cortex supersede --undo {replacement.old_id[:12]}"],
        replacement.applied.warnings,
    )
