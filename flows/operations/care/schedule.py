"""Lets the nightly run start by itself, with what this machine has: systemd, launchd or cron."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.storage.machine.background_run import note_engine
from cortex.storage.machine.schedule import SCHEDULERS, Scheduler
from cortex.storage.published.reports import last_report
from cortex.transforms.documents.schedule_units import Nightly, time_of_day
from cortex.transforms.errors import ScheduleUnavailable

DEFAULT_TIME = "03:30"


@dataclass(frozen=True)
class Schedule:
    """
    How the nightly run starts.

    `installed` names the schedulers that start it (one, or none), `available` those that could;
    `last_nightly` is when the last one began, `next_start` what the scheduler says of the next.
    """

    installed: tuple[str, ...]
    available: tuple[str, ...]
    last_nightly: datetime | None
    next_start: str | None


def schedule_status(context: Context) -> Schedule:
    """Return how the nightly run starts here, and when it last did."""
    installed = [each for each in SCHEDULERS if each.is_installed()]
    return Schedule(
        installed=tuple(each.name for each in installed),
        available=tuple(each.name for each in SCHEDULERS if each.is_available()),
        last_nightly=last_nightly(context),
        next_start=installed[0].next_start() if installed else None,
    )


def install_schedule(
    context: Context, *, at: str = DEFAULT_TIME, only: str | None = None, dry_run: bool = False
) -> tuple[str, dict[str, str]]:
    """
    Let the first scheduler that works here, or `only` that one, start the nightly run each night at `at`.

    Returns its name and what it wrote, by place; with `dry_run` nothing is written. One installed before
    gives way. Raises UsageError for a time that is none, ScheduleUnavailable if nothing works.
    """
    scheduler = _scheduler(only, looks_only=dry_run)
    nightly = _nightly(context, at)
    files = scheduler.files(nightly)
    if not dry_run:
        for other in SCHEDULERS:
            if other is not scheduler and other.is_installed():
                other.uninstall()
        scheduler.install(nightly)
    return scheduler.name, files


def uninstall_schedule() -> list[str]:
    """Take the nightly run out of every scheduler that starts it; return their names."""
    installed = [each for each in SCHEDULERS if each.is_installed()]
    for each in installed:
        each.uninstall()
    return [each.name for each in installed]


def last_nightly(context: Context) -> datetime | None:
    """Return when the last nightly run of the store began; None without one."""
    report = last_report(context.open_store().runs, "nightly")
    started_at = report["started_at"] if report else None
    return datetime.fromisoformat(started_at) if isinstance(started_at, str) else None


def is_due(context: Context, at: str) -> bool:
    """Return whether no nightly run began since it was last `at`, by the local clock. Raises UsageError."""
    hour, minute = time_of_day(at)
    now = context.now.astimezone()
    moment = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    last = last_nightly(context)
    return last is None or last < (moment if moment <= now else moment - timedelta(days=1))


def _scheduler(only: str | None, *, looks_only: bool) -> Scheduler:
    usable: Sequence[Scheduler] = [each for each in SCHEDULERS if only in (None, each.name)]
    for each in usable:
        if each.is_available() or (looks_only and only):
            return each
    tried = ", ".join(each.name for each in usable)
    raise ScheduleUnavailable(
        f"none of these works here: {tried}.",
        "Let anything else that runs commands start `cortex nightly --if-due 03:30` once an hour.",
    )


def _nightly(context: Context, at: str) -> Nightly:
    hour, minute = time_of_day(at)
    engine = note_engine(context.home)
    if engine is None:
        raise ScheduleUnavailable(
            "it is unknown where the `cortex` command is.", "Call `cortex schedule install` by its own name."
        )
    environment = {} if context.home == Path.home() / ".cortex" else {"CORTEX_HOME": str(context.home)}
    return Nightly((str(engine), "nightly", "--if-due", f"{hour:02}:{minute:02}"), hour, minute, environment)
