"""The stages that keep memories: linked with neighbours, aged, merged where they say the same, retired."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run.fingerprints import STAGES_VERSION
from cortex.flows.run.model_replies import (
    answer_about,
    same_statements_in,
    verdicts_of,
    with_answer_of,
    with_closings_of,
    with_short_forms_of,
)
from cortex.flows.run.run import Run, stage
from cortex.flows.run_report import StageReport
from cortex.flows.stages.embed import embed_memories, searchable
from cortex.flows.stages.guard import clear_guard_notes
from cortex.storage.lake.manifest import Output
from cortex.storage.tables.tables import HAS_VECTOR, UNAGED
from cortex.transforms.audit import Violation, edges_violations, memories_violations
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Prune
from cortex.transforms.memory.consolidate import propose, wanted
from cortex.transforms.memory.lifecycle import findings
from cortex.transforms.memory.link import LINKED_COLUMNS, FormerLinks, edges_state
from cortex.transforms.memory.link import edges_between as links_between
from cortex.transforms.memory.validity import with_valid_time
from cortex.transforms.schemas import EVENTS, JOURNAL, MEMORIES, Row, values
from cortex.transforms.views.review import resolved_edges


@stage(reads="turns events replies journal vectors memories edges", writes="edges")
def link(run: Run) -> None:
    """Compare the memories of each scope with their neighbours and keep the edges."""
    with run.report.stage("link") as row:
        for scope in run.readings.scopes():
            with run.outcome.isolated(scope, "link"):
                inputs = run.fingerprints.linked(scope)
                if not run.ledger.has_made("link", scope, inputs):
                    _link(run, scope, inputs, row)


def _link(run: Run, scope: str, inputs: str, row: StageReport) -> None:
    memories = run.readings.memories(scope)
    linked = linked_before(run, scope)
    vectors, model = run.readings.vectors(), run.embedding.model
    edges = links_between(memories, vectors, run.policy, model, linked, is_parsed=True)
    edges = with_closings_of(run, scope, edges, memories)
    edges = with_answer_of(edges, memories, answer_about(run, scope))
    edges = _with_verdicts(run, scope, edges, memories)
    edges = resolved_edges(edges, run.readings.merged_journal(scope))
    if run.outcome.passes(scope, edges.num_rows, partial(edges_violations, edges, memories)):
        row.rows_in += memories.num_rows
        row.rows_out += run.store.tables.replace(scope, "edges", edges)
        run.ledger.note_output("link", scope, inputs)


def linked_before(run: Run, scope: str) -> FormerLinks | None:
    """Return the memories and edges of a scope's tables if these are known to be made of those, else None."""
    edges = run.store.tables.open(scope, "edges").read()
    if run.ledger.notes.outputs.get(Output("linked", scope)) != _linked_as(run, edges):
        return None
    columns = [*LINKED_COLUMNS, UNAGED["status"], HAS_VECTOR]
    rows = run.store.tables.open(scope, "memories").read(columns)
    if rows.schema.names != columns:
        return None
    unaged = rows.drop_columns(["status"]).rename_columns({UNAGED["status"]: "status"})
    return FormerLinks(unaged, edges)


def _linked_as(run: Run, edges: pa.Table) -> str:
    """Return what is noted of EDGES that go with the memories of their scope."""
    return content_id(STAGES_VERSION, run.policy.fingerprint, run.embedding.model, edges_state(edges))


def _with_verdicts(run: Run, scope: str, edges: pa.Table, memories: pa.Table) -> pa.Table:
    """Return a scope's edges as a language model says that their ends stand to each other."""
    verdicts = verdicts_of(run, scope)
    if not verdicts:
        return edges
    from cortex.transforms.writer.pairs import with_verdicts

    return with_verdicts(edges, memories, verdicts)


@stage(reads="turns events journal vectors edges memories", writes="memories journal")
def decay(run: Run) -> None:
    """Age the memories of each scope to today, rank them, and keep them."""
    with run.report.stage("decay") as row:
        for scope in run.readings.scopes():
            with run.outcome.isolated(scope, "decay"):
                _decay(run, scope, row)
        clear_guard_notes(run)


def _decay(run: Run, scope: str, row: StageReport) -> None:
    # Of now: an entry that comes in meanwhile is not in these memories.
    inputs_of, linked = run.fingerprints.aged_by_day(scope), run.fingerprints.linked(scope)
    generation, key = run.store.lake.manifest.generation, Output("decay", scope)
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
    notes, folded = run.ledger.notes, run.readings.fold_note(scope, generation)
    cuts = {output: cut for output, cut in notes.cuts.items() if output != key}
    run.ledger.note(replace(notes, cuts={**cuts, **({key: folded} if folded else {})}))
    if run.ledger.notes.outputs.get(Output("link", scope)) == linked:
        run.ledger.note_output("linked", scope, _linked_as(run, edges))


def _violations(run: Run, scope: str, memories: pa.Table) -> list[Violation]:
    """Return what is wrong with memories about to be shown."""
    live = run.store.tables.open(scope, "memories").read(["memory_id", *MEMORIES.texts])
    return memories_violations(memories, live, scope, run.policy)


# -- The stage consolidate: memories that say the same become one.

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
            with run.outcome.isolated(scope, "consolidate"):
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
        linked=linked_before(run, scope),
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


@stage(reads="turns events journal edges memories", writes="journal")
def retire(run: Run) -> None:
    """
    Journal a tombstone for each memory that was archived too long; its words stay in the lake.

    A few a day and scope, those archived first: what came together in a backfill would fade together, and a
    night must not hide more than a small share of what was shown.
    """
    with run.report.stage("retire") as row:
        run.store.journal.take_in()
        rows: list[Row] = []
        for scope in run.readings.scopes():
            with run.outcome.isolated(scope, "retire"):
                rows += _due(run, scope)
        row.rows_out = len(rows)
        if rows:
            run.store.journal.commit(JOURNAL.of([_tombstone(memory, run.now) for memory in rows]))


def _due(run: Run, scope: str) -> list[Row]:
    """Return the memories of a scope whose turn it is to be pruned today."""
    table = run.store.tables.open(scope, "memories")
    # As of the last decay: nothing archived there, nothing to look at closer.
    if not table.read(["memory_id"], {"status": ["archived"], "merged_into": [None]}).num_rows:
        return []
    aged = run.readings.aged(scope, run.day)
    due = aged.memories.filter(aged.marks["is_due"]).sort_by(
        [("archived_at", "ascending"), ("memory_id", "ascending")]
    )
    return due.slice(0, max(0, _at_most(run, aged.memories) - _pruned_today(run, scope))).to_pylist()


def _at_most(run: Run, memories: pa.Table) -> int:
    shown = memories.filter(pc.is_in(memories["status"], pa.array(["active", "archived"]))).num_rows
    return max(1, int(run.policy.threshold("prune_share_per_day") * shown))


def _pruned_today(run: Run, scope: str) -> int:
    journal = run.readings.journal(scope)
    is_todays = (pc.field("kind") == "prune") & (pc.field("recorded_at") >= pa.scalar(run.day))
    return journal.filter(is_todays).num_rows


def _tombstone(memory: Row, now: datetime) -> dict[str, object]:
    tombstone = Prune(
        memory["memory_type"],
        memory["source_type"],
        memory["trust"],
        created_at=memory["created_at"].isoformat(),
        updated_at=memory["updated_at"].isoformat(),
    )
    return tombstone.to_row(
        memory["project_id"], recorded_at=now, memory_id=memory["memory_id"], actor="decay"
    )
