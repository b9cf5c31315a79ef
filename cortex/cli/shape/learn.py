"""The command `learn`: stores a lesson that passes a quality gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import PROJECT_OPTION
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.change.learn import Learned


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
    from cortex.flows.operations.change import learn

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
    hints = ["It contradicts an active decision: cortex review"] if learned.contradicts else []
    return Answer(data, [_sentence(learned)], hints, learned.applied.warnings)


def _sentence(learned: Learned) -> str:
    label = f"{learned.memory_id[:12]} ({learned.memory_type}, {learned.project})"
    if learned.outcome == "reinforced":
        return f"Known already as {label}, which is reinforced: {excerpt(learned.text, 160)}"
    return f"Learned as {label}" + (
        ", in place of its shorter words." if learned.outcome == "reworded" else "."
    )
