"""The commands `run` and `nightly`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ACCEPT_LOSS, ENGINE
from cortex.cli.run_answer import report_answer, running
from cortex.flows import operations

if TYPE_CHECKING:
    from cortex.flows.context import Context


@command("run")
@ENGINE
@ACCEPT_LOSS
def run(context: Context, engine: str | None, accept_loss: bool) -> Answer:
    """Read what the hooks have staged."""
    with running(context, engine) as (choice, progress):
        report = operations.intake.run_flow(
            context, "ingest", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)


@command("nightly")
@click.option("--if-due", "at", metavar="HH:MM", help="Do nothing where one began since that time of day.")
@ENGINE
@ACCEPT_LOSS
def nightly(context: Context, at: str | None, engine: str | None, accept_loss: bool) -> Answer:
    """Read what is staged, age all memories, merge those that say the same, publish."""
    if at and not operations.schedule.is_due(context, at):
        return Answer({"due": False})
    with running(context, engine) as (choice, progress):
        report = operations.intake.run_flow(
            context, "nightly", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)
