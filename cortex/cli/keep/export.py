"""The command `export`: memories out of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import AS_OF, PROJECT_OPTION
from cortex.cli.terminal import hint, write_text

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("export", "Write memories as JSON or Markdown.", place=30)
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="json: complete; markdown: a list to read.",
)
@PROJECT_OPTION
@AS_OF
def export(
    context: Context, file: str | None, form: str, project: str | None, as_of: str | None
) -> Answer | None:
    """
    Write memories to FILE or to standard output, by default those of every project.

    JSON holds everything, and `cortex import` puts it back as it was. Markdown holds text, type and project
    of the active memories.
    """
    from cortex.flows.operations.share import exchange

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
