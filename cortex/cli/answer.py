"""
What a command gives back and how people or programs see it; how one is declared, and shared options.

All that a command prints goes through here. What a memory, a path or a name says is a stranger's: no control
sequence, no character that cannot be seen reaches a terminal; in JSON they are escaped.

    @command("pin", "Protect a memory from fading and merging.")
    @click.argument("memory")
    def pin(context: Context, memory: str) -> Answer:
        '''Keep the MEMORY, named by its id, from fading and merging.'''
        pinned = operations.pin(context, memory)
        return Answer({"id": pinned.id}, [f"{pinned.id[:12]} neither fades nor merges."])

The decorator gives the function the context, adds `--json` and prints the answer. A command that shows
something before it is done, or asks, yields answers: people see each, a program the data of the last one.
Its line in `cortex --help` stands in the section that is the module's folder; `make docs` prints the index.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

import click

from cortex.hooks.prose.characters import displayed, escaped
from cortex.storage.filesystem.files import discard
from cortex.storage.filesystem.place import store_home
from cortex.transforms.errors import CortexError

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.flows.operations.edit.forget import Copies


# -- What people see: tables, progress bars, ages; JSON for programs.

# A bar for shorter work would only flicker.
QUIET_SECONDS = 2.0
# What takes long in a run, and what it is called; of the first bytes are counted.
BYTES_PHASE = "extract"
ASKING_PHASE = "ask"
PHASES = {
    BYTES_PHASE: "Reading transcripts",
    "embed_memories": "Comparing facts",
    "embed": "Search by meaning",
    ASKING_PHASE: "A language model reads",
}
CELL_CHARS = 60
# A column that wraps into less is not read.
MIN_WRAPPED_CHARS = 12


def print_json(value: object) -> None:
    """Print one JSON object on standard output; what cannot be seen is escaped, so nothing is lost."""
    _write(escaped(json.dumps(value, ensure_ascii=False, indent=2, default=str)) + "\n")


def say(text: str = "") -> None:
    """Print a line for people."""
    write_text(text + "\n")


def write_text(text: str) -> None:
    """Print text as it is laid out, without what cannot be seen."""
    _write(displayed(text, keeps_lines=True))


def _write(text: str) -> None:
    """Write to standard output at once; once its reader (head, less) has seen enough, to nowhere."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What the command does goes on: a set-up that reads old sessions is not cut off by `| head`.
        discard(sys.stdout)


def hint(text: str) -> None:
    """Print a line on standard error, unless that would spoil a pipe."""
    sys.stderr.write(displayed(text, keeps_lines=True) + "\n")


class ProgressBar:
    """A progress callback: one bar on standard error, with rate and time left, once work takes 2 s."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, amount="")
        self._begun, self._phase = time.monotonic(), ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is; stages that take no time are not shown."""
        if stage not in PHASES:
            return
        bar, task = self._bar, self._bar.tasks[0]
        if stage != self._phase or task.total != total:
            self._phase = stage
            bar.reset(self._task, total=total, description=PHASES[stage], amount="")
        bar.update(self._task, completed=done, amount=amount_of(stage, done, total, task.speed))
        is_slow = time.monotonic() - self._begun > QUIET_SECONDS
        if not bar.live.is_started and is_slow and sys.stderr.isatty():
            bar.start()

    def stop(self) -> None:
        """Take the bar away; the next call shows it again."""
        if self._bar.live.is_started:
            self._bar.stop()


@contextmanager
def progress_bar() -> Iterator[ProgressBar]:
    """Yield a progress callback that shows one bar."""
    bar = ProgressBar()
    try:
        yield bar
    finally:
        bar.stop()


def amount_of(stage: str, done: int, total: int, per_second: float | None) -> str:
    """
    Return how much of a phase is done and how fast it goes.

    >>> amount_of("extract", 12_400_000, 25_245_106, 2_000_000)
    '12.4 MB of 25.2 MB, 2.0 MB/s'
    >>> amount_of("embed", 128_000, 512_000, None)
    '25 %'
    """
    if stage == BYTES_PHASE:
        rate = f", {size_of(int(per_second))}/s" if per_second else ""
        return f"{size_of(done)} of {size_of(total)}{rate}"
    if stage == ASKING_PHASE:
        return f"{done:,} of {total:,} requests"
    return f"{100 * done // max(1, total)} %"


@dataclass(frozen=True)
class Listing:
    """
    A table for people; columns in `numbers` are aligned right, `totals` stand below the rows.

    The column `wraps` takes what the others leave of a terminal's width and goes on in further lines, at most
    `most_lines` where that is given; no other column breaks. Without it, the widest column wraps.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Set[str] = frozenset()
    wraps: str = ""
    totals: Sequence[str] = ()
    most_lines: int = 0


def print_listing(listing: Listing) -> None:
    """
    Print a table, as wide as the terminal allows.

    One that does not fit goes as one block a row. Into a file or a pipe it goes plain: one line a row
    whatever the width, no borders, no colour, columns two spaces apart.
    """
    if sys.stdout.isatty():
        _print_table(listing)
    else:
        write_text(plain_table(listing))


def plain_table(listing: Listing) -> str:
    """Return a table as lines of text, one a row, columns two spaces apart."""
    rows = [[" ".join(displayed(text).split()) for text in row] for row in _all_rows(listing)]
    lines = [list(listing.columns), *rows]
    widths = [max(map(_cells, column)) for column in zip(*lines, strict=True)]
    text = [listing.title, *(_plain_line(listing, line, widths) for line in lines)]
    return "\n".join(text) + "\n"


def _plain_line(listing: Listing, line: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for name, text, width in zip(listing.columns, line, widths, strict=True):
        room = " " * (width - _cells(text))
        padded.append(room + text if name in listing.numbers else text + room)
    return "  ".join(padded).rstrip()


def _cells(text: str) -> int:
    """Return how wide a text is on a terminal: a Chinese character takes two places."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _all_rows(listing: Listing) -> list[Sequence[str]]:
    return [*listing.rows, *([listing.totals] if listing.totals else [])]


def _print_table(listing: Listing) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=displayed(listing.title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_footer=bool(listing.totals),
    )
    wraps = listing.wraps or _widest(listing)
    console = Console(highlight=False, markup=False)
    listing = _cut(listing, wraps, console.width)
    if _width_without(listing, wraps) + MIN_WRAPPED_CHARS > console.width:
        write_text(records(listing))
        return
    for at, name in enumerate(listing.columns):
        table.add_column(
            displayed(name),
            displayed(listing.totals[at]) if listing.totals else "",
            justify="right" if name in listing.numbers else "left",
            overflow="fold",
            no_wrap=name != wraps,
        )
    for row in listing.rows:
        table.add_row(*(displayed(text, keeps_lines=True) for text in row))
    console.print(table)


def _cut(listing: Listing, wraps: str, width: int) -> Listing:
    """Return the table with the cells of the column that wraps cut to what fits in its lines."""
    if not listing.most_lines:
        return listing
    from textwrap import wrap

    from cortex.transforms.words.sentences import shortened

    at, rows = listing.columns.index(wraps), [list(row) for row in listing.rows]
    lines = [*_all_rows(listing), listing.columns]
    others = [max(map(_cells, column)) + 2 for column in zip(*lines, strict=True)]
    room = max(20, width - sum(others) + others[at] - 3)
    for row in rows:
        lines_of_cell = wrap(row[at], room)
        if row[at].isascii() and len(lines_of_cell) > listing.most_lines:
            last = shortened(lines_of_cell[listing.most_lines - 1] + " ...", room)
            row[at] = " ".join([*lines_of_cell[: listing.most_lines - 1], last.removesuffix(" ...") + "…"])
            row[at] = row[at].replace("……", "…")
        elif not row[at].isascii():  # wide characters take two places
            row[at] = shortened(row[at], (room - 4) * listing.most_lines * len(row[at]) // _cells(row[at]))
    return replace(listing, rows=rows)


def records(listing: Listing) -> str:
    """Return a table that is wider than the terminal as one block a row, with a line for each column."""
    width = max(map(_cells, listing.columns))
    blocks = [
        "".join(
            f"{name}{' ' * (width - _cells(name))}  {' '.join(displayed(text).split())}\n"
            for name, text in zip(listing.columns, row, strict=True)
        )
        for row in _all_rows(listing)
    ]
    return "\n".join([listing.title + "\n", *blocks])


def _width_without(listing: Listing, wraps: str) -> int:
    lines = [*_all_rows(listing), listing.columns]
    columns = zip(listing.columns, zip(*lines, strict=True), strict=True)
    return sum(max(map(_cells, cells)) + 2 for name, cells in columns if name != wraps)


def _widest(listing: Listing) -> str:
    lines = [*_all_rows(listing), listing.columns]
    widths = [max(map(_cells, column)) for column in zip(*lines, strict=True)]
    return listing.columns[widths.index(max(widths))]


_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float]) -> str:
    """
    Return a line of bars, one a value, by its share of the largest; a space for nothing.

    >>> sparkline([0, 1, 4, 8])
    ' ▁▄█'
    """
    top = max(values, default=0)
    if top <= 0:
        return " " * len(values)
    bars = (min(len(_BARS) - 1, max(0, round(value / top * len(_BARS)) - 1)) for value in values)
    return "".join(_BARS[bar] if value > 0 else " " for bar, value in zip(bars, values, strict=True))


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


# -- Options that several commands share.


def _projects(context: click.Context, option: click.Parameter, word: str) -> list[str]:
    """Return the ids of the projects that begin with `word`, for a shell that completes."""
    from cortex.storage.filesystem.place import store_home
    from cortex.storage.published.catalogue import Catalogue

    return [name for name in Catalogue(store_home()).project_ids() if name.startswith(word)]


PROJECT_OPTION = click.option(
    "--project",
    metavar="NAME",
    help="Project name, id or path. Default: the project of this folder.",
    shell_complete=_projects,
)
SEARCHED_ALL = "This folder belongs to no project: searched all."
ALL_PROJECTS = click.option("--all-projects", is_flag=True, help="Include every project.")
LIMIT = click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="COUNT",
    help="Show at most COUNT rows.",
)


def check_day(context: click.Context, option: click.Parameter, word: str | None) -> str | None:
    """Return an option's word for a day as it is, refused before anything is opened if it names none."""
    from cortex.transforms.words.ages import start_of

    if word:
        start_of(word, option.opts[0], datetime.now(UTC))
    return word


AS_OF = click.option(
    "--as-of",
    metavar="DATE",
    callback=check_day,
    help="Use what was known at the end of that day (UTC): 2026-09-14, yesterday, 10d or 3w ago.",
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
ENGINE = click.option(
    "--engine",
    type=click.Choice(["auto", "prefect", "plain"]),
    help="Run the stages with Prefect, or one after another without it. Default: the setting run.engine "
    "(auto: with Prefect if a server is configured).",
)
ACCEPT_LOSS = click.option(
    "--accept-loss", is_flag=True, help="Publish even if many memories now shown would disappear."
)


# Where a click context notes that `--json` was given.
JSON_FLAG = "cortex.json"


@dataclass(frozen=True)
class Answer:
    """
    What a command answers.

    `data` is the JSON object for programs; `lines` are lines and tables for people, on standard output;
    `hints` are for people too, `warnings` for everybody, both on standard error. With an `error` the command
    ends as if it had been raised, after the answer is printed; in JSON it is a part of the one object.
    """

    data: Mapping[str, object]
    lines: Iterable[str | Listing] = ()
    hints: Sequence[str] = ()
    warnings: Sequence[str] = ()
    exit_code: int = 0
    error: CortexError | None = None


Answers = Answer | Iterator[Answer] | None
ContextSource = Union["Context", Callable[[], "Context"], None]
Declared = TypeVar("Declared", bound=click.Command)

# Behind every other of its section stands a command that names no place; several are sorted by name.
LAST = 1_000


@dataclass(frozen=True)
class ListedCommand:
    """A command of `cortex --help`: where it is declared, its line there, and its place in its section."""

    name: str
    module: str
    function: str
    short_help: str
    place: int


# By name, of the modules that are imported.
LISTED: dict[str, ListedCommand] = {}


def listed(short_help: str, *, place: int = LAST) -> Callable[[Declared], Declared]:
    """
    List a command in `cortex --help`, by its line there, in the section that its module's folder is.

    Raises ValueError if another command has its name.
    """

    def note(declared: Declared) -> Declared:
        function = declared.callback
        assert declared.name is not None and function is not None
        entry = ListedCommand(declared.name, function.__module__, function.__qualname__, short_help, place)
        known = LISTED.setdefault(entry.name, entry)
        if (known.module, known.function) != (entry.module, entry.function):
            raise ValueError(f"{known.module} and {entry.module} both declare the command '{entry.name}'")
        declared.short_help = short_help
        return declared

    return note


def command(
    name: str,
    short_help: str = "",
    *,
    place: int = LAST,
    parent: click.Group | None = None,
    json: bool = True,
    takes_context: bool = True,
    takes_dashes: bool = False,
) -> Callable[[Callable[..., Answers]], click.Command]:
    """
    Declare a command, below `parent` where that is a group such as `config`; `json` adds `--json`.

    With `short_help` it is listed in `cortex --help`. Without `takes_context` the function runs though the
    settings cannot be read; see `current_context`. With `takes_dashes` an argument may begin with a dash.
    """

    def declare(function: Callable[..., Answers]) -> click.Command:
        settings = {"ignore_unknown_options": takes_dashes}
        declared = click.command(name, context_settings=settings)(_printing(function, takes_context))
        _complete(declared, json)
        if parent is not None:
            parent.add_command(declared)
        return listed(short_help, place=place)(declared) if short_help else declared

    return declare


def group(
    name: str, short_help: str, *, place: int = LAST, json: bool = True, takes_context: bool = True
) -> Callable[[Callable[..., Answers]], click.Group]:
    """Declare a command that has others below it; it runs itself if none of them is named."""

    def declare(function: Callable[..., Answers]) -> click.Group:
        run = _printing(function, takes_context)

        @functools.wraps(function)
        def unless_subcommand(**values: Any) -> None:
            if click.get_current_context().invoked_subcommand is None:
                run(**values)

        declared = click.group(name, invoke_without_command=True)(unless_subcommand)
        _complete(declared, json)
        return listed(short_help, place=place)(declared)

    return declare


def _complete(declared: click.Command, json: bool) -> None:
    if json:
        declared.params.append(
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                callback=_note_json,
                help="Print JSON instead of text.",
            )
        )


def _note_json(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[JSON_FLAG] = True


def _printing(function: Callable[..., Answers], takes_context: bool) -> Callable[..., None]:
    @functools.wraps(function)
    def run(**values: Any) -> None:
        _print(function(current_context(), **values) if takes_context else function(**values))

    return run


def context_from(source: ContextSource) -> Context:
    """Return the context that a caller gave, or gave as a function; else that of the environment."""
    from cortex.flows.context import Context

    return source if isinstance(source, Context) else (source or Context)()


def current_context() -> Context:
    """Return the context of the command, which is click's `obj`. Raises UsageError for bad settings."""
    root = click.get_current_context().find_root()
    root.obj = context_from(root.obj)
    context: Context = root.obj
    return context


def current_home() -> Path:
    """Return the store's folder, also if the settings cannot be read."""
    source = click.get_current_context().find_root().obj
    return store_home() if source is None or callable(source) else source.home


def prints_json() -> bool:
    """Return whether the command answers a program."""
    return JSON_FLAG in click.get_current_context().meta


def can_ask() -> bool:
    """Return whether a person sits at the terminal and can be asked."""
    return sys.stdin.isatty() and not prints_json()


def _print(result: Answers) -> None:
    answers = [result] if isinstance(result, Answer) else result or ()
    last = None
    for answer in answers:
        _print_for_people(answer)
        last = answer
    if last is None:
        return
    if prints_json():
        print_json({**last.data, **(last.error.as_dict() if last.error else {})})
    if last.error is not None:
        hint(f"cortex: {last.error} [{last.error.code}]")
    if code := last.error.exit_code if last.error else last.exit_code:
        sys.exit(code)


def _print_for_people(answer: Answer) -> None:
    for line in answer.warnings:
        hint(line)
    if prints_json():
        return
    for part in answer.lines:
        if isinstance(part, Listing):
            print_listing(part)
        else:
            say(part)
    for line in answer.hints:
        hint(line)


# -- What answers of commands that erase have in common.

NOTHING_FORGOTTEN = Answer({"forgotten": False}, ["Nothing forgotten."])


def copies_lines(copies: Copies) -> list[str]:
    """Return lines that name what was reached, where there is more than the store, and what was not."""
    reached = [f"Erased from: {each}." for each in copies.reached] if len(copies.reached) > 1 else []
    return [*reached, *(f"Still in: {each}." for each in copies.left)]


def copies_data(copies: Copies) -> dict[str, object]:
    """Return them as data."""
    return {"copies_left": list(copies.left), "copies_reached": list(copies.reached)}
