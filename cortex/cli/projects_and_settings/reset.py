"""The command `reset`: all about a project is erased, once a person has agreed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, can_ask, command
from cortex.cli.erased_answer import NOTHING_FORGOTTEN, copies_data, copies_lines
from cortex.transforms.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context


@command("reset", "Erase everything about a project.", place=20)
@click.option("--project", metavar="NAME", required=True, help="Project name, id or path.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def reset(context: Context, project: str, yes: bool) -> Iterator[Answer]:
    """Erase everything about a project up to now; later sessions are kept."""
    from cortex.flows.operations.change import forget

    plan = forget.plan_reset(context, project)
    names = ", ".join(plan.project_ids)
    if not yes:
        loss = f"{plan.memories} memories and {plan.turns} turns of {names} for good"
        if not can_ask():
            raise UsageError(f"this forgets {loss}.", "To continue, repeat the command with --yes.")
        if not click.confirm(f"This forgets {loss}. Go on?"):
            yield NOTHING_FORGOTTEN
            return
    done = forget.reset(context, plan)
    applied = done.applied
    data = {
        "projects": list(plan.project_ids),
        "memories": plan.memories,
        "turns": plan.turns,
        "applied": applied.is_in_effect,
        **copies_data(done.copies),
    }
    yield Answer(
        data,
        [
            f"Forgotten: {plan.memories} memories and {plan.turns} turns of {names}.",
            *copies_lines(done.copies),
        ],
        ["The assistant's own transcripts are stored outside Cortex and are still there; backups too."],
        applied.warnings,
    )
