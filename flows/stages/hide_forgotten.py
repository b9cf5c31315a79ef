"""Taking what was forgotten out of what people see while a loss waits and nothing else is published."""

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.database import publish_database
from cortex.flows.publishing.passages import passages_in
from cortex.flows.publishing.surfaces import show_briefs
from cortex.flows.run.run import Run
from cortex.flows.stages.embed import searchable
from cortex.flows.stages.wipe import wipe
from cortex.storage.lake.notes import REPLACED_BY
from cortex.transforms.journal_entries import Forget, entries_in, is_prune
from cortex.transforms.memory.forgetting import Phrases
from cortex.transforms.schemas import GLOBAL_SCOPE, TURNS, Row, values


def withdraw_forgotten(run: Run) -> None:
    """
    Remove erased memories and passages from the live tables and what is published; nothing is added.

    The briefs of the scopes concerned go whole, of all projects where a global memory goes: the next run that
    publishes makes them again. Does nothing if no erasure is due.
    """
    due = run.store.lake.notes.to_wipe
    if not due:
        return
    with run.report.stage("withdraw") as row:
        counts = {scope: _withdraw_rows(run, scope) for scope in due}
        row.rows_out = sum(counts.values())
        is_everywhere = counts.get(GLOBAL_SCOPE, 0) > 0
        projects = run.store.published.projects() if is_everywhere else due
        _forget_outputs(run, {*due, *projects})
        for project_id in projects:
            run.store.shown_lines.show(project_id, (), run.now)
            run.store.published.drop(project_id)
        show_briefs(run)
        publish_database(run, run.readings.scopes(), "")
    wipe(run)


def _withdraw_rows(run: Run, scope: str) -> int:
    """Remove a scope's erased rows from its tables; return how many memories went."""
    tables = run.store.tables
    memories = tables.open(scope, "memories").read()
    deleted = pa.array(sorted(_deleted_in(run, scope, memories)), pa.string())
    kept = memories.filter(pc.invert(pc.is_in(memories["memory_id"], deleted)))
    tables.replace(scope, "memories", searchable(kept, run.readings.vectors()))
    edges = tables.open(scope, "edges").read()
    ends = pc.or_(pc.is_in(edges["source_id"], deleted), pc.is_in(edges["target_id"], deleted))
    tables.replace(scope, "edges", edges.filter(pc.invert(ends)))
    passages = tables.open(scope, "passages").read()
    indexed = passages_in(run, scope, run.store.journal.forgotten_turns())
    same = set(zip(values(indexed, "passage_id"), values(indexed, "content_hash"), strict=True))
    pairs = zip(values(passages, "passage_id"), values(passages, "content_hash"), strict=True)
    still = passages.filter(pa.array([pair in same for pair in pairs], pa.bool_()))
    tables.replace(scope, "passages", searchable(still, run.readings.vectors()))
    return memories.num_rows - kept.num_rows


def _deleted_in(run: Run, scope: str, memories: pa.Table) -> set[str]:
    """
    Return the memories that are to be out of sight: forgotten by name, resting on erased turns, or with the
    words of one that is.
    """
    named, tombstones = _forgotten_by_name(run, scope), run.readings.tombstones(run.retention)
    resets = [at for name, at in tombstones.projects.items() if name in {scope, *run.readings.parts(scope)}]
    left = {n for p in run.readings.parts(scope) for n in values(run.store.lake.read(TURNS, p), "turn_id")}
    rows, since = memories.to_pylist(), run.retention.of(scope).since

    def is_gone(row: Row) -> bool:
        if row["memory_id"] in named:
            return True
        if not row["evidence"]:
            return any(row["created_at"] <= at for at in resets)
        return any(
            place["turn_id"] not in left
            and (
                place["session_id"] in tombstones.session_ids
                or place["turn_id"] in tombstones.turn_ids
                or any(place["said_at"] is None or place["said_at"] <= at for at in resets)
                or (since is not None and (place["said_at"] or run.now) < since)
            )
            for place in row["evidence"]
        )

    gone = {row["memory_id"] for row in rows if is_gone(row)}
    texts_query = Phrases.of(row["text"] for row in rows if row["memory_id"] in named)
    holds = texts_query.patterns_in([row["text"] for row in rows])
    return gone | {row["memory_id"] for row, held in zip(rows, holds, strict=True) if held}


def _forgotten_by_name(run: Run, scope: str) -> set[str]:
    journal = pa.concat_tables([run.store.journal.read(), run.readings.merged_journal(scope)])
    return {
        row["memory_id"]
        for row, entry in entries_in(journal, Forget)
        if row["memory_id"] and not is_prune(entry)
    }


def _forget_outputs(run: Run, scopes: set[str]) -> None:
    with run.store.lake.change() as change:
        change.notes = change.notes.without_outputs(REPLACED_BY, scopes)
