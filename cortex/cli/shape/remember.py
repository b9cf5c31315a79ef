"""The command `remember`: stores a fact in a person's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import PROJECT_OPTION

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.change.remember import Remembered


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
    """Store a fact in your own words. A known fact is reinforced; text without content is refused."""
    from cortex.flows.operations.change import remember

    memory = remember.remember(
        context,
        " ".join(text),
        memory_type=memory_type,
        priority=priority,
        is_global=is_global,
        is_pinned=is_pinned,
        project=project,
    )
    data = {
        "id": memory.memory_id,
        "project": memory.project,
        "searchable": memory.applied.is_in_effect,
        "outcome": memory.outcome,
    }
    return Answer(data, [_sentence(memory)], warnings=memory.applied.warnings)


def _sentence(memory: Remembered) -> str:
    label = f"{memory.memory_id[:12]} ({memory.memory_type}, {memory.project})"
    if memory.outcome == "reinforced":
        return f"Known already as {label}, which is reinforced."
    return f"Remembered as {label}" + (
        ", in place of its shorter words." if memory.outcome == "reworded" else "."
    )
