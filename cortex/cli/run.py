"""The commands `run` and `nightly`, and how the report of any run is printed."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ACCEPT_LOSS, ENGINE
from cortex.cli.terminal import Listing, hint, progress_bar, size_of
from cortex.flows import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.cli.terminal import ProgressBar
    from cortex.flows.context import Context
    from cortex.flows.report import RunReport

QUARANTINED_SHOWN = 12


@command("run")
@ENGINE
@ACCEPT_LOSS
def run(context: Context, engine: str | None, accept_loss: bool) -> Answer:
    """Read what the hooks have staged."""
    with running(context, engine) as (choice, progress):
        report = operations.intake.run_flow(
            context, "ingest", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)


@command("nightly")
@click.option("--if-due", "at", metavar="HH:MM", help="Do nothing where one began since that time of day.")
@ENGINE
@ACCEPT_LOSS
def nightly(context: Context, at: str | None, engine: str | None, accept_loss: bool) -> Answer:
    """Read what is staged, age all memories, merge those that say the same, publish."""
    if at and not operations.schedule.is_due(context, at):
        return Answer({"due": False})
    with running(context, engine) as (choice, progress):
        report = operations.intake.run_flow(
            context, "nightly", engine=choice, progress=progress, accepts_loss=accept_loss
        )
    return report_answer(report)


@contextmanager
def running(context: Context, engine: str | None = None) -> Iterator[tuple[str, ProgressBar]]:
    """Yield the engine (default: the setting's) and a progress callback, after a hint on Prefect's start."""
    engine = engine or context.settings.engine
    if engine == "prefect":
        hint("Starting Prefect, unless a server of it is set up (about 10 s; --engine plain runs without) …")
    with progress_bar() as progress:
        yield engine, progress


def report_answer(report: RunReport) -> Answer:
    """Return the answer that a run report gives."""
    return Answer(report.as_dict(), list(_lines(report)))


def _lines(report: RunReport) -> Iterator[str | Listing]:
    yield Listing(
        f"{report.flow} ({report.engine}): {report.transcripts} transcripts, "
        f"{size_of(report.transcript_bytes)}, {report.seconds:.1f} s",
        ["stage", "rows in", "rows out", "seconds", "note"],
        [[s.stage, f"{s.rows_in:,}", f"{s.rows_out:,}", f"{s.seconds:.2f}", s.note] for s in report.stages],
        numbers={"rows in", "rows out", "seconds"},
    )
    held = ", ".join(f"{name} {count:,}" for name, count in report.rows.items())
    new = ", ".join(f"{count:,} {name}" for name, count in report.new_rows.items() if count)
    yield f"Store now: {held}. New: {new or 'nothing'}."
    yield from (f"Note: {note}" for note in report.notes)
    yield from _quarantine(report)
    for line in report.left_out:
        yield (
            f"Left out of the brief: {line.row_id[:12]} {line.reason}. "
            f"`cortex forget {line.row_id[:12]}` removes it."
        )


def _quarantine(report: RunReport) -> Iterator[str | Listing]:
    lines = report.quarantined
    if not lines:
        return
    rows = [[line.file, str(line.line or ""), line.reason] for line in lines[:QUARANTINED_SHOWN]]
    yield Listing(f"Quarantined: {len(lines)}", ["file", "line", "reason"], rows, numbers={"line"})
    if len(lines) > QUARANTINED_SHOWN:
        by_reason = dict(Counter(line.reason for line in lines))
        yield f"… {len(lines) - QUARANTINED_SHOWN} more. By reason: {by_reason}. All of them: --json"
