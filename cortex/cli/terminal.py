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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cortex.hooks.characters import escaped, visible

if TYPE_CHECKING:
    from cortex.flows.run import Progress

# A bar for shorter work would only flicker.
QUIET_SECONDS = 2.0
# What takes long in a run, and what it is called; of the first bytes are counted.
BYTES_PHASE = "extract"
PHASES = {BYTES_PHASE: "Reading transcripts", "embed": "Search by meaning"}
CELL_CHARS = 60


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
def progress_bar() -> Iterator["Progress"]:
    """Yield a progress callback: one bar on standard error, with rate and time left, once work takes 2 s."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=None, amount="")
    begun, phase = time.monotonic(), ""

    def advance(stage: str, done: int, total: int) -> None:
        nonlocal phase
        if stage not in PHASES:
            return
        if stage != phase or bar.tasks[task].total != total:
            phase = stage
            bar.reset(task, total=total, description=PHASES[stage], amount="")
        bar.update(task, completed=done, amount=amount_of(stage, done, total, bar.tasks[task].speed))
        if not bar.live.is_started and time.monotonic() - begun > QUIET_SECONDS and sys.stderr.isatty():
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def amount_of(stage: str, done: int, total: int, per_second: float | None) -> str:
    """
    Return how much of a phase is done and how fast it goes.

    >>> amount_of("extract", 12_400_000, 25_245_106, 2_000_000)
    '12.4 MB of 25.2 MB, 2.0 MB/s'
    >>> amount_of("embed", 128, 1_666, None)
    '128 of 1,666 texts'
    """
    if stage == BYTES_PHASE:
        rate = f", {size_of(int(per_second))}/s" if per_second else ""
        return f"{size_of(done)} of {size_of(total)}{rate}"
    return f"{done:,} of {total:,} texts" + (f", {per_second:,.0f}/s" if per_second else "")


@dataclass(frozen=True)
class Listing:
    """A table for people; columns in `numbers` are aligned right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Set[str] = frozenset()


def print_listing(listing: Listing) -> None:
    """Print a table, as wide as the terminal allows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=visible(listing.title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in listing.columns:
        justify: Literal["left", "right"] = "right" if name in listing.numbers else "left"
        table.add_column(visible(name), justify=justify, overflow="fold")
    for row in listing.rows:
        table.add_row(*(visible(text, keeps_lines=True) for text in row))
    Console(highlight=False, markup=False).print(table)


def cell(text: str | None) -> str:
    """Return a text on one line, cut to CELL_CHARS."""
    flat = " ".join((text or "").split())
    return flat if len(flat) <= CELL_CHARS else flat[: CELL_CHARS - 1] + "…"


def size_of(count: int) -> str:
    """
    Return a number of bytes for people.

    >>> size_of(25_245_106)
    '25.2 MB'
    """
    from rich.filesize import decimal

    return decimal(count)
