"""What Cortex adds to this machine: the commands `install`, `uninstall`, `statusline` and `schedule`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import DRY_RUN, Answer, command, current_home, group
from cortex.hooks.statusline import line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context import Context
    from cortex.flows.operations.maintain.setup import Schedule, SettingsChange


@command("install", "Add the hooks to the client's settings.", place=30)
@DRY_RUN
def install(context: Context, dry_run: bool) -> Answer:
    """Add the plugin's hooks to the client's user settings, for use without the plugin.

    Other keys, their order and the indentation stay as they are. To undo: `cortex uninstall`.
    """
    from cortex.flows.operations.maintain import setup

    change = setup.install(context, dry_run=dry_run)
    hints = [] if dry_run else ["New sessions use them. Remove them again: cortex uninstall"]
    return change_answer(change, *hints)


@command("uninstall", "Take back what setup put in place; the memory stays.", place=40)
@DRY_RUN
def uninstall(context: Context, dry_run: bool) -> Answer:
    """Remove the plugin, its tools, the nightly run, hooks and status line. Memory and program are kept."""
    from cortex.flows.operations.maintain import setup
    from cortex.storage.filesystem.place import removal_of_program

    removed = setup.uninstall_all(context, dry_run=dry_run)
    answer = change_answer(removed.settings)
    done = ", ".join(removed.done)
    lines = [f"{'Would remove' if dry_run else 'Removed'}: {done}."] if done else []
    changed = answer.lines if removed.settings.is_different or not done else ()
    hints = [
        f"The memory stays in {context.home}. Delete it: rm -r {context.home}",
        f"This program stays. Remove it: {removal_of_program()}",
    ]
    data = {**answer.data, "removed": list(removed.done), "failed": list(removed.failed)}
    hints = ["Nothing has been changed yet."] if dry_run else hints
    return Answer(data, [*lines, *changed], hints, removed.failed, 1 if removed.failed else 0)


def change_answer(change: SettingsChange, *hints: str) -> Answer:
    """Return the answer to a change of the client's settings: the file, or what would change in it."""
    data = {
        "file": change.file,
        "changed": change.is_different and not change.is_dry_run,
        "diff": change.diff,
    }
    unknown = "The hooks do not know yet where the `cortex` command is: the first `cortex run` tells them."
    warnings = [] if change.knows_engine else [unknown]
    if not change.is_dry_run:
        outcome = "changed" if change.is_different else "nothing to change"
        return Answer(data, [f"{change.file}: {outcome}."], hints, warnings)
    hint = "Nothing has been changed yet." if change.is_different else f"{change.file}: nothing to change."
    return Answer(data, change.diff.splitlines(), [hint, *hints], warnings)


@group(
    "statusline",
    "Print a status line: memories, capture and context.",
    place=60,
    json=False,
    takes_context=False,
)
def statusline() -> Iterator[Answer]:
    """
    Print the status line for the client's JSON on standard input, or add it to the settings or remove it.
    """
    here: dict[str, object] = {"cwd": str(Path.cwd())}
    try:
        payload = here if sys.stdin.isatty() else json.loads(sys.stdin.buffer.read() or b"{}")
        text = line(str(current_home()), payload, time())
    except (OSError, ValueError, AttributeError):
        return  # the client calls it after each event: silence is the only right answer
    if text:
        yield Answer({}, [text])


@command("install", parent=statusline)
@DRY_RUN
def install_status_line(context: Context, dry_run: bool) -> Answer:
    """Add the status line to the client's settings, below an existing one."""
    from cortex.flows.operations.maintain import setup

    return change_answer(setup.install_status_line(dry_run=dry_run))


@command("uninstall", parent=statusline)
@DRY_RUN
def uninstall_status_line(context: Context, dry_run: bool) -> Answer:
    """Remove the status line and restore the one that was there before."""
    from cortex.flows.operations.maintain import setup

    return change_answer(setup.uninstall_status_line(dry_run=dry_run))


@group("schedule", "Schedule the nightly run.", place=70)
def schedule(context: Context) -> Answer:
    """Schedule the nightly run; without a subcommand, show whether it is scheduled."""
    from cortex.flows.operations.maintain import setup

    return _status(setup.schedule_status(context))


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
    from cortex.flows.operations.maintain import setup

    name, files = setup.install_schedule(context, at=at, only=only, dry_run=dry_run)
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
    from cortex.flows.operations.maintain import setup

    return _status(setup.schedule_status(context))


@command("uninstall", parent=schedule, takes_context=False)
def uninstall_schedule() -> Answer:
    """Remove the nightly run from systemd, launchd or cron."""
    from cortex.flows.operations.maintain import setup

    names = setup.uninstall_schedule()
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
    return Answer(asdict(status), lines)
