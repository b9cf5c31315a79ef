"""The command `index-code`: keeps a description of a source file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import PROJECT_OPTION
from cortex.transforms.errors import UsageError

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("index-code", "Store a searchable description of a source file.", place=40)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--describe", metavar="TEXT", help="What the file does and why. Default: standard input.")
@PROJECT_OPTION
def index_code(context: Context, path: Path, describe: str | None, project: str | None) -> Answer:
    """Store a searchable description of the source file PATH, with its code.

    The code is stored, but never embedded or shown in a brief. Indexing a file again replaces its old entry.
    """
    from cortex.flows.operations.change import index_code

    code = index_code.index_code(context, path, _described(describe), project=project)
    return Answer(
        {
            "file": code.file,
            "code": code.code_id,
            "code_description": code.description_id,
            "searchable": code.applied.is_in_effect,
        },
        [f"Indexed {code.file}: description {code.description_id[:12]}, code {code.code_id[:12]}."],
        warnings=code.applied.warnings,
    )


def _described(description: str | None) -> str:
    if description is not None:
        return description
    if sys.stdin.isatty():
        raise UsageError(
            "the description is missing.", "Give --describe TEXT, or the text on standard input."
        )
    return sys.stdin.read()
