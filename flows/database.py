"""What `memory.duckdb` is made from: the tables of every scope and the counts of its sessions."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run import Run
from cortex.flows.snapshots import NOTHING_KNOWN, Snapshots, last_snapshots
from cortex.storage.catalogue import projects_document
from cortex.storage.store import DATABASE
from cortex.transforms.errors import FileDamaged
from cortex.transforms.memory.catalogue import ProjectFacts, project_rows, session_rows
from cortex.transforms.memory.metrics import session_metrics
from cortex.transforms.schemas import (
    EDGES,
    EVENTS,
    GLOBAL_SCOPE,
    MEMORIES,
    METRICS,
    PROJECTS,
    SESSIONS,
    Row,
    Table,
    values,
)


def publish_database(run: Run, scopes: Sequence[str], inputs: str) -> None:
    """Publish `memory.duckdb` and the counts; where a file of the lake is damaged the last good ones stay."""
    published, merged = run.store.published, run.store.projects.merged()
    snapshots = last_snapshots(run)
    derived = derived_tables(run, snapshots)
    try:
        if not run.outcome.damages:
            published.publish_database(run.store.lake, derived, merged, snapshots.fingerprints)
    except FileDamaged as error:
        run.outcome.damages.append(error)
    if run.outcome.damages:
        return
    published.publish_catalogue(projects_document(*_catalogue(run, derived)))
    published.publish_counts(_active(derived["memories"], scopes))
    run.ledger.note_output(*DATABASE, inputs)


def _active(memories: pa.Table, scopes: Sequence[str]) -> dict[str, int]:
    active = memories.filter(pc.equal(memories["status"], pa.scalar("active")))
    counts = Counter(values(active, "project_id"))
    return {scope: counts[scope] for scope in scopes}


def derived_tables(run: Run, known: Snapshots = NOTHING_KNOWN) -> dict[str, pa.Table]:
    """Return the rows of every snapshot, by name; those that `known` has are not made again."""
    memories, edges = _all(run, MEMORIES, known), _all(run, EDGES, known)
    metrics, sessions = _of_sessions(run, memories, known)
    projects = project_rows(_facts(run, known), memories, sessions)
    return {
        "memories": memories,
        "edges": edges,
        "metrics": metrics,
        "sessions": sessions,
        "projects": projects,
    }


def _catalogue(
    run: Run, derived: Mapping[str, pa.Table]
) -> tuple[list[Row], dict[str, set[str]], tuple[int, int]]:
    """Return what is published of the projects: PROJECTS, the names of each, counts of the global scope."""
    memories = derived["memories"]
    statuses = values(memories.filter(pc.equal(memories["project_id"], pa.scalar(GLOBAL_SCOPE))), "status")
    active = statuses.count("active")
    rows = derived["projects"].to_pylist()
    return rows, run.store.projects.all_names(), (active, len(statuses) - active)


def _facts(run: Run, known: Snapshots) -> list[ProjectFacts]:
    projects, names = run.store.projects.all(), run.store.projects.labels()

    def count(project_id: str, name: str) -> int:
        row = known.row_of(PROJECTS, project_id)
        return int(row[name]) if row else run.store.tables.open(project_id, name).count()

    return [
        ProjectFacts(
            each.project_id,
            each.name,
            names[each.project_id],
            each.identity,
            each.paths,
            count(each.project_id, "edges"),
            count(each.project_id, "passages"),
        )
        for each in projects
    ]


def _of_sessions(run: Run, memories: pa.Table, known: Snapshots) -> tuple[pa.Table, pa.Table]:
    """Return METRICS and SESSIONS of every session."""
    rows, sessions = [METRICS.empty()], [SESSIONS.empty()]
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "metrics"):
            if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
                continue
            counted, listed = known.rows_of(METRICS, scope), known.rows_of(SESSIONS, scope)
            if counted is not None and listed is not None:
                rows.append(counted)
                sessions.append(listed)
                continue
            events = [run.store.lake.read(EVENTS, part) for part in run.readings.parts(scope)]
            turns = run.readings.turns(scope)
            rows.append(session_metrics(turns, pa.concat_tables(events), run.policy))
            own = pc.equal(memories["project_id"], pa.scalar(scope))
            sessions.append(session_rows(turns, memories.filter(own)))
    return pa.concat_tables(rows), pa.concat_tables(sessions)


def _all(run: Run, table: Table, known: Snapshots) -> pa.Table:
    pieces = [table.empty()]
    for scope in run.readings.scopes():
        rows = known.rows_of(table, scope)
        if rows is None:
            rows = run.store.tables.open(scope, table.name).read().cast(table.arrow)
        pieces.append(rows)
    return pa.concat_tables(pieces)
