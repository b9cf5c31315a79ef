"""
Prints modules of the product from what they follow from: `python -m docs.modules` writes them.

    hooks/prose/memory_types.py   types of memory and event    from memory_types.csv, event_types.csv
    cortex/cli/command_index.py   commands by section          from what cortex/cli/<section>/*.py declare
    cortex/mcp/tool_index.py      tools, scopes, schemas       from what cortex/mcp/tools/*.py declare
    storage/settings/writer_index.py  language models          from what flows/writers/*.py declare

Hooks read no CSV, and hook and engine must know a type by the same names. `cortex --help` imports no command,
the server starts without what answers its tools, and settings are read without a provider's code.
"""

import csv
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "data" / "reference"
# The living plan stands where the work stands, beside the records of sessions.
PLAN_TAG, STATE = "plan", "outcome"


def types_module() -> str:
    """Return the module of the types, with the columns of their tables that are no policy."""
    types, events = _rows("memory_types"), _rows("event_types")
    own = {row["memory_type"]: (row["event_type"], row["memory_type"]) for row in types if row["event_type"]}
    others = {row["tag"]: (row["event_type"], row["memory_type"]) for row in events if row["tag"]}
    tags = own | others
    written = [*_true(types, "memory_type", "is_written"), *_true(events, "tag", "is_written")]
    named = {name: row["memory_type"] for row in types for name in row["other_names"].split()}
    return _module(
        "Types of memory and event, and the names by which hooks, engine and programs know them.",
        "data/reference/memory_types.csv and event_types.csv",
        ("", "MEMORY_TYPES", tuple(row["memory_type"] for row in types)),
        ("", "EVENT_TYPES", tuple(row["event_type"] for row in events)),
        ("What a line `[MEMORY: tag] text` reports: type of event, type of memory.", "MEMORY_TAGS", tags),
        ("Tags that a language model may give to a fact of a session.", "WRITTEN_TAGS", tuple(written)),
        (
            "Types of what somebody says; the others follow from a session or a file.",
            "FACT_TYPES",
            tuple(_true(types, "memory_type", "is_fact")),
        ),
        (
            "Types of what a person settles by typing it; the rest are requests, questions and reports.",
            "SETTLING_TYPES",
            tuple(_true(types, "memory_type", "is_settling")),
        ),
        (
            "Types that are shown to the assistant while it works.",
            "SHOWN_TYPES",
            tuple(_true(types, "memory_type", "is_shown")),
        ),
        ("What other tools call a type.", "OTHER_NAMES", named),
        (
            "Sections of the brief without an engine, in their order: heading, lines at most, tags.",
            "BASIC_SECTIONS",
            tuple(_basic_sections(types, tags)),
        ),
    )


def _basic_sections(
    types: Sequence[dict[str, str]], tags: dict[str, tuple[str, str]]
) -> Iterable[tuple[str, int, tuple[str, ...]]]:
    shown = [row for row in types if row["basic_place"]]
    for row in sorted(shown, key=lambda row: int(row["basic_place"])):
        of_type = [
            tag
            for tag, (_, kind) in tags.items()
            if (STATE if tag == PLAN_TAG else kind) == row["memory_type"]
        ]
        yield row["brief_section"], int(row["basic_lines"]), tuple(of_type)


def _true(rows: Iterable[dict[str, str]], name: str, flag: str) -> list[str]:
    return [row[name] for row in rows if row[flag] == "true"]


def _rows(stem: str) -> list[dict[str, str]]:
    with (REFERENCE / f"{stem}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def commands_module() -> str:
    """Return the module by which the command line lists its commands, and finds each, importing none."""
    # Imported here: what was printed above is read by them.
    import cortex.cli
    from cortex.cli.answer import LISTED

    sections: dict[str, dict[str, tuple[str, str]]] = {}
    for folder in cortex.cli.SECTION_FOLDERS:
        modules = _import_modules_of(f"cortex.cli.{folder}")
        commands = [each for each in LISTED.values() if each.module in modules]
        sections[folder.replace("_", " ").capitalize()] = {
            each.name: (each.module, each.short_help)
            for each in sorted(commands, key=lambda command: (command.place, command.name))
        }
    return _module(
        "The commands by section: where each is declared, and its line in `cortex --help`.",
        "the modules in the folders of cortex/cli",
        ("", "SECTIONS", sections),
    )


def tools_module() -> str:
    """Return the module by which the server lists its tools and their scopes, importing none."""
    from cortex.mcp.tools.tool import DECLARED

    _import_modules_of("cortex.mcp.tools")
    tools = sorted(DECLARED.values(), key=lambda tool: (tool.place, tool.name))
    return _module(
        "The tools: as clients list them, what a call needs, and where each is declared.",
        "the modules in cortex/mcp/tools",
        ("", "MODULES_OF_TOOLS", {each.name: each.answer.__module__ for each in tools}),
        (
            "The scope of a call, and of one with an argument that needs another.",
            "SCOPES_OF_TOOLS: dict[str, tuple[str, dict[str, str]]]",
            {each.name: (each.scope, each.scope_with) for each in tools},
        ),
        ("", "TOOLS", _Lines(each.as_dict() for each in tools)),
    )


def providers_module() -> str:
    """Return the module by which the settings know what may write, and each is found, importing none."""
    from cortex.flows.writers import Provider

    providers: dict[str, tuple[str, Provider]] = {}
    for name in _import_modules_of("cortex.flows.writers"):
        if isinstance(provider := getattr(importlib.import_module(name), "PROVIDER", None), Provider):
            known = providers.setdefault(provider.name, (name, provider))
            if known[0] != name:
                raise ValueError(f"{known[0]} and {name} both declare the provider '{provider.name}'")
    named = [f"{provider.name} ({provider.needs})" for _, provider in providers.values()]
    return _module(
        "The providers of language models: where each is declared, and how the settings' page names them.",
        "the modules in flows/writers",
        ("", "WRITER_MODULES", {name: module for name, (module, _) in providers.items()}),
        ("", "WRITER_WORDS", f"{', '.join(['none', *named[:-1]])} or {named[-1]}"),
    )


def _import_modules_of(package: str) -> list[str]:
    """Import all modules of a folder; return their names."""
    folder = importlib.import_module(package)
    names = [f"{package}.{each.name}" for each in pkgutil.iter_modules(folder.__path__)]
    for name in names:
        importlib.import_module(name)
    return names


class _Lines(tuple[object, ...]):
    """Items that take a line each, however long."""

    def __repr__(self) -> str:
        return "\n".join(["(", *(f"    {item!r}," for item in self), ")"])


def _module(purpose: str, source: str, *constants: tuple[str, str, object]) -> str:
    """Return a module of constants, each with a comment above where it needs one."""
    lines = [
        f'"""{purpose}',
        "",
        f"Printed by `make docs` from {source}; change that, not this module.",
        '"""',
        "",
    ]
    for comment, name, value in constants:
        lines += [f"# {comment}"] if comment else []
        assignment = f"{name} = {value!r}"
        lines += ["# fmt: off", assignment, "# fmt: on"] if isinstance(value, _Lines) else [assignment]
    formatter = [sys.executable, "-m", "ruff", "format", "-"]
    source_text = "\n".join(lines) + "\n"
    return subprocess.run(
        formatter, cwd=ROOT, input=source_text, capture_output=True, text=True, check=True
    ).stdout


# Path below the checkout → what prints it; a later one may read an earlier one.
MODULES = {
    "hooks/prose/memory_types.py": types_module,
    "cortex/cli/command_index.py": commands_module,
    "cortex/mcp/tool_index.py": tools_module,
    "storage/settings/writer_index.py": providers_module,
}


def main() -> None:
    """Write the modules that differ and say which."""
    for name, print_module in MODULES.items():
        path, text = ROOT / name, print_module()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
