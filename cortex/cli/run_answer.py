"""How any run is begun and its report printed, and how a command that met damaged tables rebuilds them."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from cortex.cli.answer import (
    Answer,
    ContextSource,
    Listing,
    context_from,
    hint,
    prints_json,
    progress_bar,
    size_of,
)
from cortex.transforms.errors import CortexError, TablesDamaged
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.cli.answer import ProgressBar
    from cortex.flows.context import Context
    from cortex.flows.run_report import RunReport

QUARANTINED_SHOWN = 12
AUDIT = "audit"
# Between two looks whether the run that is waited for has ended.
WAIT_SECONDS = 1.0


@contextmanager
def running(context: Context, engine: str | None = None) -> Iterator[tuple[str, ProgressBar]]:
    """Yield the engine (default: the setting's) and a progress callback, after a hint on Prefect's start."""
    engine = engine or context.settings.engine
    if sys.stderr.isatty() and not prints_json():
        _wait_for_other(context)
    if engine == "prefect":
        hint("Starting Prefect, unless a server is configured (about 10 s; without it: --engine plain) …")
    with progress_bar() as progress:
        yield engine, progress


def _wait_for_other(context: Context) -> None:
    """Wait until no other run writes to the store; a person sees how far that is, and Ctrl-C ends it."""
    import time

    from cortex.storage.published.reports import read_progress
    from cortex.storage.remote.store_lease import is_free

    is_said = False
    while not is_free(context.home):
        if not is_said:
            progress = read_progress(context.home)
            where = f" ({progress.words})" if progress else ""
            hint(f"Another run is at work{where}: this one begins when it is done. Ctrl-C stops waiting.")
            is_said = True
        time.sleep(WAIT_SECONDS)


def report_answer(report: RunReport) -> Answer:
    """Return the answer that a run report gives."""
    return Answer(report.as_dict(), list(_lines(report)))


def _lines(report: RunReport) -> Iterator[str | Listing]:
    yield Listing(
        f"{report.flow} ({report.engine}): {counted(report.transcripts, 'transcript')}, "
        f"{size_of(report.transcript_bytes)}, {report.seconds:.1f} s",
        ["stage", "rows in", "rows out", "seconds", "note"],
        [
            [s.stage, f"{s.rows_in:,}", f"{s.rows_out:,}", f"{s.seconds:.2f}", s.note]
            for s in report.stages
            if s.stage != AUDIT or s.rows_out  # without a violation the line says nothing
        ],
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
    yield Listing(
        f"Quarantined: {report.quarantined_count:,}", ["file", "line", "reason"], rows, numbers={"line"}
    )
    if len(lines) > QUARANTINED_SHOWN:
        by_reason: Counter[str] = Counter()
        for line in lines:
            by_reason[line.reason] += line.count
        more = report.quarantined_count - QUARANTINED_SHOWN
        yield f"… {more:,} more. By reason: {dict(by_reason)}. Up to 1,000 of each file: --json"


# -- Tables and published files that are missing or damaged are rebuilt, whatever command met them.


def heal(error: TablesDamaged, source: ContextSource) -> Context:
    """
    Rebuild what `error` names and return the context to call the command with once more.

    Where that is not possible (another run writes, the store is read-only, the lake is damaged), say so: the
    command then shows what is there.
    """
    # Imported here: what runs stages takes half a second to import, and few commands need it.
    from cortex.flows.engines.runs import opened, run_plain
    from cortex.flows.stages.order import PROJECTION

    context = context_from(source)
    hint(f"cortex: {error.problem} Rebuilding it from the lake.")
    try:
        with opened("tables", context) as run:
            if error.scope is not None:
                run.store.tables.drop(error.scope)
            else:
                run.store.published.drop_database()
            run_plain(PROJECTION, run)
    except CortexError as problem:
        hint(f"cortex: {problem} [{problem.code}]")
        return replace(context, checks_projections=False)
    return context
