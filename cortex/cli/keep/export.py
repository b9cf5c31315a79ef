"""The command `export`: memories and tables out of a store."""

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


@command("export", "Write memories as JSON or Markdown, tables as Delta.", place=30)
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "delta"]),
    default="json",
    show_default=True,
    help="JSON holds all of each memory, Markdown is a list to read; delta: tables for a lakehouse.",
)
@PROJECT_OPTION
@AS_OF
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help="Delta: only this table; may be repeated."
)
def export(
    context: Context,
    file: str | None,
    form: str,
    project: str | None,
    as_of: str | None,
    tables: tuple[str, ...],
) -> Answer | None:
    """
    Write memories to FILE, or to standard output; default: those of every project.

    JSON holds everything, and `cortex import` puts it back as it was. Markdown holds text, type and project
    of the active memories. With --format delta, FILE is a folder or s3://BUCKET/PREFIX: it gets the tables
    that `cortex sql` shows, transcripts (turns) included; repeated, only what changed is written.
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
