"""The commands `run` and `nightly`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ACCEPT_LOSS, ENGINE
from cortex.cli.run_answer import report_answer, running

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("run", "Read the sessions that the hooks have staged.", place=20)
@ENGINE
@ACCEPT_LOSS
def run(context: Context, engine: str | None, accept_loss: bool) -> Answer:
    """Read the sessions that the hooks have staged."""
    from cortex.flows.operations.care import intake

    with running(context, engine) as (choice, progress):
        report = intake.run_flow(
            context, "ingest", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)


@command("nightly", "Read staged sessions, age and merge memories, publish.", place=30)
@click.option("--if-due", "at", metavar="HH:MM", help="Do nothing if one has started since that time of day.")
@ENGINE
@ACCEPT_LOSS
def nightly(context: Context, at: str | None, engine: str | None, accept_loss: bool) -> Answer:
    """Read staged sessions, age all memories, merge those that say the same, publish."""
    from cortex.flows.operations.care import intake, schedule

    if at and not schedule.is_due(context, at):
        return Answer({"due": False})
    with running(context, engine) as (choice, progress):
        report = intake.run_flow(
            context, "nightly", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)
