"""The stage decay: the memories of each scope as they are today."""

from dataclasses import replace
from functools import partial

import pyarrow as pa

from cortex.flows.context.run_report import StageReport
from cortex.flows.run.run import Run
from cortex.flows.run.verdicts import answer_about, with_short_forms_of
from cortex.flows.stages.embed import searchable
from cortex.flows.stages.guard import settle
from cortex.flows.stages.stage import stage
from cortex.storage.tables.tables import UNAGED
from cortex.transforms.audit import Violation, memories_violations
from cortex.transforms.memory.fading import findings
from cortex.transforms.schemas import MEMORIES
from cortex.transforms.writer.validity import with_valid_time


@stage(reads="turns events journal vectors edges memories", writes="memories journal")
def decay(run: Run) -> None:
    """Age the memories of each scope to today, rank them, and keep them."""
    with run.report.stage("decay") as row:
        for scope in run.readings.scopes():
            with run.outcome.apart(scope, "decay"):
                _decay(run, scope, row)
        settle(run)


def _decay(run: Run, scope: str, row: StageReport) -> None:
    # Of now: an entry that comes in meanwhile is not in these memories.
    inputs_of = run.fingerprints.aged_by_day(scope)
    if run.ledger.has_made("decay", scope, inputs_of(run.day, ())):
        return
    aged = run.readings.aged(scope, run.day)
    answer = answer_about(run, scope)
    edges = run.store.tables.open(scope, "edges").read()
    memories = with_short_forms_of(run, scope, aged.memories)
    memories = with_valid_time(memories, edges, answer.endings() if answer else {}, run.policy)
    if not run.outcome.passes(scope, memories.num_rows, partial(_violations, run, scope, memories)):
        return
    row.rows_in += memories.num_rows
    rows = searchable(memories, run.readings.vectors(), run.readings.index_texts(scope))
    for name, unaged in UNAGED.items():
        rows = rows.append_column(unaged, aged.unaged[name])
    row.rows_out += run.store.tables.replace(scope, "memories", rows)
    journaled = run.ledger.note_findings(findings(aged, run.readings.weak(scope), scope, run.now))
    notes = run.ledger.notes
    run.ledger.note(replace(notes, makers={**notes.makers, scope: run.fingerprints.makers(scope)}))
    run.ledger.note_output("decay", scope, inputs_of(run.day, journaled))


def _violations(run: Run, scope: str, memories: pa.Table) -> list[Violation]:
    """Return what is wrong with memories about to be shown."""
    live = run.store.tables.open(scope, "memories").read(["memory_id", *MEMORIES.texts])
    return memories_violations(memories, live, scope, run.policy)
