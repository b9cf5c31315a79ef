"""
What a command gives back, and the decorator that declares one.

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

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

import click

from cortex.cli.terminal import Listing, hint, print_json, print_listing, say
from cortex.storage.ground.place import store_home
from cortex.transforms.errors import CortexError

if TYPE_CHECKING:
    from cortex.flows.context.context import Context

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
) -> Callable[[Callable[..., Answers]], click.Command]:
    """
    Declare a command, below `parent` where that is a group such as `config`; `json` adds `--json`.

    With `short_help` it is listed in `cortex --help`. Without `takes_context` the function runs though the
    settings cannot be read; see `current_context`.
    """

    def declare(function: Callable[..., Answers]) -> click.Command:
        declared = click.command(name)(_printing(function, takes_context))
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


def context_from(source: ContextSource) -> "Context":
    """Return the context that a caller gave, or gave as a function; else that of the environment."""
    from cortex.flows.context.context import Context

    return source if isinstance(source, Context) else (source or Context)()


def current_context() -> "Context":
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
