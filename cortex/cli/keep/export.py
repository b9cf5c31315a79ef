"""The commands `export` and `import`: memories and tables out of a store, memories into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import AS_OF, PROJECT_OPTION
from cortex.cli.terminal import hint, write_text
from cortex.transforms.errors import UnknownValue, UsageError
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.share.exchange import ImportResult


@command("export")
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "delta"]),
    default="json",
    show_default=True,
    help="json: complete; markdown: a list to read; delta: tables for a lakehouse.",
)
@PROJECT_OPTION
@AS_OF
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Delta: only this table; repeatable.")
def export(
    context: Context,
    file: str | None,
    form: str,
    project: str | None,
    as_of: str | None,
    tables: tuple[str, ...],
) -> Answer | None:
    """
    Write memories to FILE or to standard output, by default those of every project.

    JSON holds everything, and `cortex import` restores it as it was. Markdown holds text, type and project of
    the active memories. With --format delta, FILE is a folder or s3://BUCKET/PREFIX for the tables that
    `cortex sql` shows, including transcripts (turns); running it again writes only what changed.
    """
    from cortex.flows.operations.share import exchange

    if form == "delta":
        return _export_delta(context, file, project, as_of, tables)
    if tables:
        raise UsageError("--table belongs to --format delta.", "Leave out one of them.")
    path = Path(file) if file is not None else None
    exported = exchange.export(context, path, form=form, project=project, as_of=as_of)
    warnings = []
    if not exported.is_signed:
        warnings.append(
            "Not signed, since the key cannot be written: import it with --own, or it counts as external."
        )
    if path is None:
        for line in warnings:
            hint(line)
        write_text(exported.text)
        return None
    keeps_all = "Markdown keeps text, type and project of active memories. To keep everything: --format json"
    return Answer(
        {"file": str(path), "memories": exported.memories},
        [f"{exported.memories} memories written to {path}."],
        [keeps_all] if form == "markdown" else [],
        warnings,
    )


def _export_delta(
    context: Context, place: str | None, project: str | None, as_of: str | None, tables: tuple[str, ...]
) -> Answer:
    from cortex.flows.operations.share import delta

    if place is None or as_of is not None:
        raise UsageError(
            "--format delta needs a folder, and has no --as-of.",
            "Give a folder or s3://BUCKET/PREFIX. Delta keeps the versions of each export by itself.",
        )
    if unknown := sorted(set(tables) - delta.EXPORTED.keys()):
        raise UnknownValue("table", unknown[0], delta.EXPORTED)
    exported = delta.export_delta(context, place, tables=tables, project=project)
    rows = [vars(each) for each in exported.tables]
    lines = [
        f"{each.table}: {counted(each.projects, 'project')}, {each.written} written, {each.removed} removed"
        for each in exported.tables
    ]
    return Answer({"place": exported.place, "tables": rows}, [*lines, f"Delta tables: {exported.place}"])


@command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--own", is_flag=True, help="Trust the file: it is your own export from another machine.")
@PROJECT_OPTION
def import_(context: Context, file: Path, own: bool, project: str | None) -> Answer:
    """
    Read memories from FILE: an export of Cortex, a Markdown list, or JSON of claude-mem, mem0 and others.

    Your own export, recognized by its signature, is restored as it was, each memory in its project. Anything
    else counts as external: recall finds it, but no brief shows it. If FILE is a folder, Cortex reads the
    notes that Claude Code keeps there (~/.claude/projects/*/memory) into the project of their transcripts.
    """
    from cortex.flows.operations.share import exchange

    result = exchange.import_memories(context, file, project=project, is_own=own)
    data = {
        "format": result.form,
        "own_export": result.is_own,
        "imported": result.imported,
        "known": result.known,
        "forgotten_before": result.forgotten,
        "unknown_project": result.homeless,
        "unusable": result.unusable,
        "applied": result.applied.is_in_effect,
    }
    counts = [
        f"{result.imported} imported",
        f"{result.known} known already",
        f"{result.unusable} unusable",
    ]
    if result.forgotten:
        counts.append(f"{result.forgotten} forgotten or pruned here before, not brought back")
    hints = _hints(result, file) + result.applied.warnings
    return Answer(data, [f"{result.form}: {', '.join(counts)}."], hints)


def _hints(result: ImportResult, file: Path) -> list[str]:
    hints = []
    if result.homeless:
        hints.append(
            f"{result.homeless} memories belong to projects that this store does not know and were left out."
            f" To import them: cortex import {file} --project NAME"
        )
    if result.imported and not result.is_own:
        hints.append(
            "The contents of the file count as external: recall finds them, but no brief shows them."
        )
        if result.form == "cortex":
            hints.append("It is not signed with this user's key. If it is your own export: repeat with --own")
    return hints
