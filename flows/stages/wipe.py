"""The stage wipe: after an erasure no byte of what was erased stays in tables and files."""

from dataclasses import replace

from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage


@stage(writes="memories edges passages")
def wipe(run: Run) -> None:
    """Remove the bytes that an erasure left in older versions of the tables and in unnamed files."""
    notes = run.store.lake.notes
    # Where an audit failed the last good version still stands, words and all, until a run replaces it.
    ready = [scope for scope in notes.to_wipe if scope not in run.outcome.failed]
    if not ready:
        return
    with run.report.stage("wipe") as row:
        for scope in ready:
            run.store.tables.purge(scope)
            run.store.note_emptied(scope)
        row.rows_out = run.store.lake.sweep()
        left = tuple(scope for scope in notes.to_wipe if scope in run.outcome.failed)
        run.store.lake.note(replace(run.store.lake.notes, to_wipe=left))
