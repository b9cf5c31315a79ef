"""The command `rebuild`: rebuilds the tables from the lake, or compares them with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ACCEPT_LOSS
from cortex.cli.run_answer import report_answer
from cortex.cli.terminal import cell, hint, progress_bar
from cortex.transforms.errors import AuditFailed, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.past.comparison import Comparison
    from cortex.flows.past.lake_repair import Repair

DIFFERENCES_SHOWN = 40


@command("rebuild", "Rebuild the tables from the lake, or check them.", place=60)
@click.option("--check", is_flag=True, help="List every difference without changing anything.")
@click.option(
    "--adopt-lake", is_flag=True, help="First rebuild a missing or wrong manifest from the lake's files."
)
@click.option(
    "--set-aside",
    "quarantine",
    is_flag=True,
    help="First move damaged and unknown lake files out of the store and continue without them.",
)
@ACCEPT_LOSS
def rebuild(context: Context, check: bool, adopt_lake: bool, quarantine: bool, accept_loss: bool) -> Answer:
    """Rebuild tables and briefs from the lake and replace the live ones.

    With --check, only compares them row by row; a difference exits with code 12.
    """
    from cortex.flows.operations.care import rebuild

    if check and (adopt_lake or quarantine):
        raise UsageError("--check changes nothing.", "Give it alone, or omit it.")
    if check:
        return _compared(rebuild.compare_tables(context))
    with progress_bar() as progress:
        report = rebuild.rebuild_tables(
            context,
            adopt_lake=adopt_lake,
            quarantine=quarantine,
            accepts_loss=accept_loss,
            progress=progress,
            on_repair=_print_repair,
        )
    return report_answer(report)


def _print_repair(repair: Repair) -> None:
    """Print at once what happened to the lake's files: the rebuild that follows may fail."""
    if repair.adopted:
        hint(f"Adopted {repair.adopted} lake files. The next backfill reads the transcripts again.")
    for path in repair.left_out:
        hint(f"Left out: {path}")
    if repair.folder:
        hint(
            f"The skipped files are in {repair.folder}, where `cortex forget` does not reach. "
            "Delete it when you no longer need it. To read transcripts again: cortex backfill"
        )


def _compared(comparison: Comparison) -> Answer:
    differences = comparison.differences
    error = AuditFailed(
        f"{len(differences)} cells of the live tables differ from the lake.",
        "Rebuild them: cortex rebuild",
    )
    return Answer(
        {
            "clean": not differences,
            "rows": comparison.rows,
            "differences": [asdict(difference) for difference in differences],
            "notes": comparison.notes,
        },
        list(_lines(comparison)),
        error=error if differences else None,
    )


def _lines(comparison: Comparison) -> Iterator[str]:
    differences = comparison.differences
    yield from (f"Note: {note}." for note in comparison.notes)
    for each in differences[:DIFFERENCES_SHOWN]:
        cells = f"{each.column}: {cell(each.live)} ≠ {cell(each.rebuilt)}" if each.column else "whole row"
        rows = "" if each.column else f": live {each.live}, rebuilt {each.rebuilt}"
        yield f"{each.scope} {each.table} {each.key[:12]} {cells}{rows}"
    if len(differences) > DIFFERENCES_SHOWN:
        yield f"… {len(differences) - DIFFERENCES_SHOWN} more; all of them: --json"
    if not differences:
        yield f"Clean: {comparison.rows:,} rows match the lake."
