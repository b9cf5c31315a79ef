"""The command `import`: memories of a file into the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import PROJECT_OPTION

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.share.exchange import ImportResult


@command("import", "Read memories from a file.", place=50)
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
        hints.append("What the file says counts as external: recall finds it, no brief shows it.")
        if result.form == "cortex":
            hints.append("It is not signed with this user's key. If it is your own export: repeat with --own")
    return hints
