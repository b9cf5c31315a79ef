"""The stage consolidate: memories that say the same become one."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from cortex.flows.context.run_report import StageReport
from cortex.flows.run.run import Run
from cortex.flows.run.verdicts import same_statements_in
from cortex.flows.stages.decay import decay
from cortex.flows.stages.embed import embed_memories
from cortex.flows.stages.link import link
from cortex.flows.stages.stage import stage
from cortex.storage.lake.notes import Output
from cortex.transforms.memory.consolidate import propose, wanted
from cortex.transforms.schemas import EVENTS, values

READS = "turns events replies journal vectors edges memories"
WRITES = "journal vectors edges memories"


@stage(reads=READS, writes=WRITES)
def consolidate(run: Run) -> None:
    """
    Merge what says the same, where enough has come together since the last time (spec 9.1).

    That it has not is noted: what is the same on the same day is not looked at again.
    """

    def is_due(scope: str) -> bool:
        state = run.fingerprints.aged(scope, run.day)
        if run.tables_as_left and run.ledger.has_made("not_due", scope, state):
            return False
        fresh = _sessions(run, scope) - run.ledger.notes.consolidated_sessions.get(scope, 0)
        if wanted(run.store.tables.open(scope, "memories").read(), fresh, run.policy):
            return True
        run.ledger.note_output("not_due", scope, state)
        return False

    _consolidate(run, is_due)


@stage(reads=READS, writes=WRITES)
def consolidate_all(run: Run) -> None:
    """Merge what says the same in every scope."""
    _consolidate(run, lambda scope: True)


def _consolidate(run: Run, is_due: Callable[[str], bool]) -> None:
    merged = 0
    with run.report.stage("consolidate") as row:
        for scope in run.readings.scopes():
            with run.outcome.apart(scope, "consolidate"):
                if run.ledger.has_made("consolidate", scope, run.fingerprints.linked(scope)):
                    continue
                if is_due(scope):
                    memories = run.store.tables.open(scope, "memories").read()
                    merged += _merge(run, scope, memories, row)
        row.note = f"{merged} merges"
    if merged:
        for again in (embed_memories, link, decay):
            again(run)


def _merge(run: Run, scope: str, memories: pa.Table, row: StageReport) -> int:
    """Journal the merges of one scope; return how many."""
    journal = run.readings.merged_journal(scope)
    merges = propose(
        memories,
        run.readings.vectors(),
        run.policy,
        run.embedding.model,
        run.now,
        undone=journal,
        same=same_statements_in(run, scope, memories),
    )
    row.rows_in += memories.num_rows
    row.rows_out += merges.num_rows
    # One commit: a kill in between would let the next run merge what was merged just now.
    inputs = run.fingerprints.linked(scope, also=values(merges, "entry_id"))
    notes = run.store.lake.notes.with_output(Output("consolidate", scope), inputs)
    sessions = {**notes.consolidated_sessions, scope: _sessions(run, scope)}
    if merges.num_rows:
        run.store.journal.commit(merges, replace(notes, consolidated_sessions=sessions))
    else:
        run.store.lake.note_later(replace(notes, consolidated_sessions=sessions))
    return int(merges.num_rows)


def _sessions(run: Run, scope: str) -> int:
    parts = [run.store.lake.read(EVENTS, part, columns=["session_id"]) for part in run.readings.parts(scope)]
    return len({name for rows in parts for name in values(rows, "session_id")})
