"""
Prints the reference pages from the code: `python -m docs.generate` writes them all.

    docs/tables.md       every table and column, with meaning and unit    from transforms/schemas.py, entries
    docs/cli.md          every command with its options                   from cortex/cli
    docs/policy.md       every policy table, numbers with their reason    from data/reference/*.csv
    docs/config.md  every setting with default, unit, variable  from storage/settings/setting_keys.py
    docs/cortex.1        the manual page: every command with its options  from cortex/cli
    docs/exit-codes.md   every error, its exit code, whether to retry     from transforms/errors.py
"""

import csv
import dataclasses
import inspect
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import click
from click.testing import CliRunner

from cortex.cli.command_index import SECTIONS
from cortex.cli.main import main as command_line
from cortex.storage.settings import setting_keys
from cortex.storage.settings.setting_keys import Key
from cortex.transforms import errors, schemas
from cortex.transforms.journal_entries import ENTRIES, FIELDS
from cortex.transforms.policy import BUILT_IN, MEMORY_TYPE_FLAGS

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "data" / "reference"

HELP_WIDTH = 100

PRINTED_BY = "<!-- Printed by `make docs` from {source}; change that, not this page. -->"


def pages() -> dict[str, str]:
    """Return file name below docs/ → text of the page."""
    return {
        "tables.md": tables_page(),
        "cli.md": cli_page(),
        "policy.md": policy_page(),
        "config.md": config_page(),
        "exit-codes.md": errors_page(),
        "cortex.1": manual_page(),
    }


def tables_page() -> str:
    """Return the page of tables: name, key, columns with type and meaning, closed sets."""
    parts = [
        _title("Tables", "transforms/schemas.py"),
        "`turns`, `events`, `journal` and `vectors` are the lake: append-only, the truth. `memories`, "
        "`edges` and `passages` are derived from it and can be rebuilt. `cortex sql` shows turns, events, "
        "calls, memories, edges and journal. All instants are UTC, in microseconds.",
    ]
    for table in schemas.ALL_TABLES:
        rows = [
            [
                f"`{field.name}`",
                _type_name(str(field.type)),
                "yes" if field.nullable else "",
                table.meaning(field.name),
            ]
            for field in table.arrow
        ]
        key = ", ".join(f"`{name}`" for name in table.key)
        parts.append(f"## {table.name}\n\nVersion {table.version}, key {key}.")
        parts.append(_grid(["column", "type", "may be empty", "meaning"], rows))
    parts += _entries()
    closed = [[f"`{name}`", ", ".join(f"`{value}`" for value in values)] for name, values in _closed_sets()]
    parts.append("## Closed sets\n\nAny other value is an error that names the allowed ones.")
    parts.append(_grid(["set", "values"], closed))
    return _joined(parts)


def cli_page() -> str:
    """Return the page of commands, by section: the help text of each as the terminal shows it."""
    parts = [
        _title("Command line", "cortex/cli"),
        "`--json` prints one JSON object on standard output; hints and progress go to standard error. "
        "[Exit codes](exit-codes.md).",
        _fenced(_help_of()),
    ]
    declared = commands()
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        for words in (words for name in names for words in declared if words[0] == name):
            parts += [f"### cortex {' '.join(words)}", _fenced(_help_of(*words))]
    return _joined(parts)


def commands(
    group: click.Group = command_line, above: tuple[str, ...] = ()
) -> dict[tuple[str, ...], click.Command]:
    """Return words → command, for every command and those below it, in the order of the help."""
    by_words: dict[tuple[str, ...], click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        by_words[*above, name] = command
        if isinstance(command, click.Group):
            by_words |= commands(command, (*above, name))
    return by_words


def policy_page() -> str:
    """Return the page of policy tables; of patterns and word lists only what their rows hold."""
    parts = [
        _title("Policy", "data/reference/*.csv"),
        "No half-life, weight or threshold is written in code; all are rows of these tables. A file of the "
        "same name in `CORTEX_HOME/policy/`, with the same columns and only the rows that differ, replaces "
        "rows by key. A column that is built in keeps the cells that it has.",
    ]
    for path in sorted(REFERENCE.glob("*.csv")):
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
        columns, body = rows[0], [row for row in rows[1:] if any(row)]
        parts.append(f"## {path.stem}")
        meanings = MEMORY_TYPE_FLAGS if path.stem == "memory_types" else {}
        meanings = meanings | {
            name: f"{meaning} (built in)" for name, meaning in BUILT_IN.get(path.stem, {}).items()
        }
        if meanings:
            parts.append("\n".join(f"- `{name}`: {meaning}" for name, meaning in meanings.items()))
        if "why" in columns and "pattern" not in columns:
            parts.append(_grid(columns, body))
        else:
            parts.append(f"{len(body)} rows of {', '.join(columns)}: see `data/reference/{path.name}`.")
    return _joined(parts)


def config_page() -> str:
    """Return the page of settings: default, unit, what each takes, its variable, its meaning."""
    rows = [
        [
            f"`{key.name}`",
            _default_of(key),
            key.unit,
            key.wanted,
            "yes" if key.per_project else "",
            f"`{key.variable}`",
            key.acts,
            key.meaning,
        ]
        for key in setting_keys.KEYS
    ]
    example = '[brief]\ntokens = 1500\n\n[project."/home/dev/tidepool".brief]\ntokens = 600'
    return _joined(
        [
            _title("Settings", "storage/settings/setting_keys.py"),
            "The environment takes precedence, then the project's section of `CORTEX_HOME/config.toml`, "
            "then the file's own sections, then the default. `cortex config` shows each value and its "
            "source; `cortex config set KEY VALUE [--project NAME]` and `unset` change the file and keep its "
            "comments. An unknown name or value is an error. In a variable, separate paths with `:` and "
            "the items of other lists with commas.",
            f"```toml\n{example}\n```",
            _grid(["setting", "default", "unit", "takes", "by project", "variable", "acts", "meaning"], rows),
            "`VOYAGE_API_KEY`, `ANTHROPIC_API_KEY` and `CLAUDE_CODE_OAUTH_TOKEN` are read as well. "
            "`cortex config` and the next run pass changes on to the hooks in `hook_settings.json`, because "
            "the hooks run on any Python from 3.9 on, which reads no TOML.",
        ]
    )


def _default_of(key: Key) -> str:
    if isinstance(key.default, tuple):
        return ", ".join(key.default) or "none"
    return str(key.default).lower() or "none"


def errors_page() -> str:
    """Return the page of errors, by exit code."""
    family = [errors.CortexError, *_subclasses(errors.CortexError)]
    rows = [
        [
            str(e.exit_code),
            f"`{e.code}`",
            e.category,
            (e.__doc__ or "").strip(),
            "yes" if e.retryable else "",
        ]
        for e in sorted(family, key=lambda e: (e.exit_code, e.code))
    ]
    return _joined(
        [
            _title("Errors and exit codes", "transforms/errors.py"),
            "One list for the command line, the MCP server and the explorer. 0 means done. Every error says "
            "what is wrong and what to do next, on standard error; with "
            '`--json` standard output holds `{"error": {"code", "problem", "next_step", "retryable"}}`. '
            "A command line that cannot be parsed also exits with 2; hooks always exit with 0.",
            "A program that calls a tool gets `{error: true, code, category, message, suggestion, details, "
            "retryable, timestamp}` instead: `details` names the argument at fault.",
            _grid(["exit code", "code", "category", "meaning", "retrying helps"], rows),
        ]
    )


def manual_page() -> str:
    """Return the manual page, in the macros of man(7): every command by section, with its options."""
    lines = [
        '.\\" Printed by `make docs` from cortex/cli; change that, not this page.',
        '.TH CORTEX 1 "" "Cortex" "User commands"',
        ".SH NAME",
        r"cortex \- memory for AI coding assistants",
        ".SH SYNOPSIS",
        ".B cortex",
        "[OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION",
        *_manual_text(command_line.help or ""),
    ]
    declared = commands()
    for title, names in SECTIONS.items():
        lines.append(f".SH {title.upper()}")
        for words in (words for name in names for words in declared if words[0] == name):
            lines += _manual_of(words, declared[words])
    files = [".SH FILES", ".TP", r".I ~/.cortex", "the store; CORTEX_HOME names another place"]
    also = [
        ".SH SEE ALSO",
        "The pages below docs/ of the source, among them cli.md, config.md, exit-codes.md.",
    ]
    return "\n".join([*lines, *files, *also]) + "\n"


def _manual_of(words: Sequence[str], command: click.Command) -> list[str]:
    context = click.Context(command, info_name=" ".join(("cortex", *words)))
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS cortex {' '.join(words)} {_manual_cell(usage)}", *_manual_text(command.help or "")]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in parameter.opts:
            lines += [".TP", f".B {_manual_cell(record[0])}", _manual_cell(record[1])]
    return lines


def _manual_text(text: str) -> list[str]:
    """Return help text as paragraphs; one that click must not wrap keeps its lines."""
    lines = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        is_kept = paragraph.startswith("\b\n")
        rows = [_manual_cell(row) for row in paragraph.removeprefix("\b\n").split("\n")]
        lines += [".PP", *([".nf", *rows, ".fi"] if is_kept else rows)]
    return lines


def _manual_cell(text: str) -> str:
    """Return text without what roff would take for a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    ascii_only = "".join(c if c.isascii() else rf"\[u{ord(c):04X}]" for c in escaped)
    return rf"\&{ascii_only}" if ascii_only[:1] in (".", "'") else ascii_only


def _title(title: str, source: str) -> str:
    return f"# {title}\n\n{PRINTED_BY.format(source=source)}"


def _closed_sets() -> Iterable[tuple[str, tuple[str, ...]]]:
    for name, value in vars(schemas).items():
        if name.isupper() and isinstance(value, tuple) and all(isinstance(member, str) for member in value):
            yield name, value


def _entries() -> Iterable[str]:
    """Yield what the payload of each kind of journal entry holds, in the order of JOURNAL_KINDS."""
    yield (
        "## Journal entries\n\nWhat `payload` holds, by kind. An optional field may be left out; fields that "
        "this version does not know are kept."
    )
    for entry in sorted(ENTRIES, key=lambda entry: schemas.JOURNAL_KINDS.index(entry.kind)):
        yield f"**`{entry.kind}`**: {' '.join((entry.__doc__ or '').split())}"
        defaults = {field.name: field.default for field in dataclasses.fields(entry)}
        rows = []
        for key, name in FIELDS[entry].items():
            hint, meaning, *_ = get_args(get_type_hints(entry, include_extras=True)[name])
            is_optional = defaults[name] is None and name not in entry.nulls
            rows.append([f"`{key}`", _json_type(hint), "yes" if is_optional else "", meaning])
        if rows:
            yield _grid(["field", "type", "optional", "meaning"], rows)


def _json_type(hint: Any) -> str:
    """Return what a field's type is in JSON."""
    if get_origin(hint) is UnionType:
        first, _ = get_args(hint)  # the other is None: a field that is left out, or null
        return _json_type(first)
    if get_origin(hint) is Sequence:
        return f"list of {_json_type(get_args(hint)[0])}"
    return {str: "string", int: "int", bool: "bool", float: "number"}.get(hint, "object")


def _type_name(arrow: str) -> str:
    """Return an Arrow type without its field names, so that a nested one fits a cell."""
    if arrow.startswith("list<item: struct<"):
        inner = re.findall(
            r"(\w+): (?:list|string|timestamp|int|double|bool)", arrow.removeprefix("list<item: ")
        )
        return f"list of {', '.join(f'`{name}`' for name in inner if name != 'item')}"
    shown = re.sub(r"list<item: (\w+)[^>]*>", r"list of \1", arrow)
    return shown.replace("timestamp[us, tz=UTC]", "instant").replace("double", "float64")


def _help_of(*command: str) -> str:
    asked = CliRunner().invoke(
        command_line, [*command, "--help"], prog_name="cortex", terminal_width=HELP_WIDTH
    )
    return asked.output.rstrip()


def _subclasses(kind: type[errors.CortexError]) -> list[type[errors.CortexError]]:
    direct = [e for e in kind.__subclasses__() if e.__module__ == errors.__name__]
    return [e for each in direct for e in (each, *_subclasses(each))]


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    return re.sub(r"([*<>|])", r"\\\1", flat)


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the pages that differ and say which."""
    for name, text in pages().items():
        path = ROOT / "docs" / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
