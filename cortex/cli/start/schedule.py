"""The commands `schedule …`: let the nightly run start by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command, group
from cortex.cli.options import DRY_RUN

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.schedule import Schedule


@group("schedule", "Schedule the nightly run.", place=70)
def schedule(context: Context) -> Answer:
    """Schedule the nightly run; without a subcommand, show whether it is scheduled."""
    from cortex.flows.operations.care import schedule

    return _status(schedule.schedule_status(context))


@command("install", parent=schedule)
@click.option("--at", default="03:30", show_default=True, metavar="HH:MM", help="Local time of day.")
@click.option(
    "--with",
    "only",
    type=click.Choice(["systemd", "launchd", "cron"]),
    help="Default: the first one that works.",
)
@DRY_RUN
def install_schedule(context: Context, at: str, only: str | None, dry_run: bool) -> Answer:
    """Schedule the nightly run with systemd, launchd or cron; a missed run is made up for."""
    from cortex.flows.operations.care import schedule

    name, files = schedule.install_schedule(context, at=at, only=only, dry_run=dry_run)
    data = {"scheduler": name, "at": at, "files": files, "installed": not dry_run}
    if dry_run:
        lines = [line for place, text in files.items() for line in (f"{place}:", *text.splitlines(), "")]
        return Answer(data, lines, hints=["Nothing has been changed yet."])
    return Answer(
        data,
        [f"{name} starts the nightly run at {at}; a missed night is caught up."],
        hints=["Remove it: cortex schedule uninstall"],
    )


@command("status", parent=schedule)
def schedule_status(context: Context) -> Answer:
    """Show how the nightly run is scheduled and when it last ran."""
    from cortex.flows.operations.care import schedule

    return _status(schedule.schedule_status(context))


@command("uninstall", parent=schedule, takes_context=False)
def uninstall_schedule() -> Answer:
    """Remove the nightly run from systemd, launchd or cron."""
    from cortex.flows.operations.care import schedule

    names = schedule.uninstall_schedule()
    words = f"{' and '.join(names)} no longer starts it." if names else "The nightly run is not scheduled."
    return Answer({"removed_from": names}, [words])


def _status(status: Schedule) -> Answer:
    last = f"{status.last_nightly:%Y-%m-%d %H:%M} UTC" if status.last_nightly else "none yet"
    lines = [
        f"Started by    {' and '.join(status.installed) or 'nothing: cortex schedule install'}",
        f"Last nightly  {last}",
    ]
    if status.next_start:
        lines.append(f"Next          {status.next_start}")
    data = {
        "installed": list(status.installed),
        "available": list(status.available),
        "last_nightly": status.last_nightly,
        "next_start": status.next_start,
    }
    return Answer(data, lines)
