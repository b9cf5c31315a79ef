"""
What people see: tables, progress bars, ages; JSON for programs.

All that a command prints goes through here. What a memory, a path or a name says is a stranger's: no control
sequence, no character that cannot be seen reaches a terminal; in JSON they are escaped.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from cortex.flows.run import Progress
from cortex.hooks.characters import escaped, visible

# A bar for shorter work would only flicker.
QUIET_SECONDS = 2.0


_CLOCK_STANDS_AT: ContextVar[datetime | None] = ContextVar("clock_stands_at", default=None)


def now() -> datetime:
    """Return the present instant; the only place where a command looks at the clock."""
    return _CLOCK_STANDS_AT.get() or datetime.now(UTC)


@contextmanager
def clock_at(instant: datetime) -> Iterator[None]:
    """Let the commands called in the block take `instant` for the present."""
    token = _CLOCK_STANDS_AT.set(instant)
    try:
        yield
    finally:
        _CLOCK_STANDS_AT.reset(token)


def print_json(value: object) -> None:
    """Print one JSON object on standard output; what cannot be seen is escaped, so nothing is lost."""
    sys.stdout.write(escaped(json.dumps(value, ensure_ascii=False, indent=2, default=str)) + "\n")


def say(text: str = "") -> None:
    """Print a line for people."""
    write(text + "\n")


def write(text: str) -> None:
    """Print text as it is laid out, without what cannot be seen."""
    sys.stdout.write(visible(text, keeps_lines=True))


def hint(text: str) -> None:
    """Print a line on standard error, where it does not spoil a pipe."""
    sys.stderr.write(visible(text, keeps_lines=True) + "\n")


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Yield a progress callback: one bar a stage on standard error, once work takes over two seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bars = Progress(
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, object] = {}
    begun = time.monotonic()

    def advance(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total)
        bars.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]
        if not bars.live.is_started and time.monotonic() - begun > QUIET_SECONDS and sys.stderr.isatty():
            bars.start()

    try:
        yield advance
    finally:
        if bars.live.is_started:
            bars.stop()


@dataclass(frozen=True)
class Table:
    """A table for people; columns in `numbers` are aligned right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Set[str] = frozenset()


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal allows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable

    shown = RichTable(
        title=visible(table.title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in table.columns:
        justify: Literal["left", "right"] = "right" if name in table.numbers else "left"
        shown.add_column(visible(name), justify=justify, overflow="fold")
    for row in table.rows:
        shown.add_row(*(visible(cell, keeps_lines=True) for cell in row))
    Console(highlight=False, markup=False).print(shown)


def table(title: str, columns: list[str], rows: list[list[str]], *, numbers: Set[str] = frozenset()) -> None:
    """Print a table; columns in `numbers` are set flush right."""
    print_table(Table(title, columns, rows, numbers))


def age_of(then: datetime | None, at: datetime) -> str:
    """
    Return how long ago something was, in the largest unit that fits.

    >>> age_of(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 15, tzinfo=UTC))
    '14 days'
    """
    if then is None:
        return "age unknown"
    days = (at - then).days
    if days >= 730:
        return f"{days // 365} years"
    if days >= 60:
        return f"{days // 30} months"
    if days >= 1:
        return f"{days} day{'s' if days > 1 else ''}"
    hours = int((at - then).total_seconds() // 3600)
    return f"{hours} hour{'s' if hours > 1 else ''}" if hours >= 1 else "just now"


def size_of(count: float) -> str:
    """
    Return a number of bytes for people.

    >>> size_of(25_245_106)
    '25.2 MB'
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
