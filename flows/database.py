"""What `memory.duckdb` is made from: the tables of every scope and the counts of its sessions."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run import Run
from cortex.storage.catalogue import projects_document
from cortex.storage.store import DATABASE
from cortex.transforms.errors import FileDamaged
from cortex.transforms.memory.catalogue import ProjectFacts, project_rows, session_rows
from cortex.transforms.memory.metrics import session_metrics
from cortex.transforms.schemas import EDGES, EVENTS, GLOBAL_SCOPE, MEMORIES, METRICS, SESSIONS, Row, values


def publish_database(run: Run, scopes: Sequence[str], inputs: str) -> None:
    """Publish `memory.duckdb` and the counts; where a file of the lake is damaged the last good ones stay."""
    published, merged = run.store.published, run.store.projects.merged()
    derived = derived_tables(run)
    try:
        if not run.outcome.damages:
            published.publish_database(run.store.lake, derived, merged)
    except FileDamaged as error:
        run.outcome.damages.append(error)
    if run.outcome.damages:
        return
    published.publish_catalogue(projects_document(*_catalogue(run, derived)))
    published.publish_counts({scope: _active(run, scope) for scope in scopes})
    run.ledger.note_output(*DATABASE, inputs)


def _active(run: Run, scope: str) -> int:
    return run.store.tables.open(scope, "memories").read(["memory_id"], {"status": ["active"]}).num_rows


def derived_tables(run: Run) -> dict[str, pa.Table]:
    """Return the rows of every snapshot, by name."""
    memories, edges = _all(run, "memories"), _all(run, "edges")
    metrics, sessions = _of_sessions(run, memories)
    projects = project_rows(_facts(run), memories, sessions)
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


def _facts(run: Run) -> list[ProjectFacts]:
    tables, projects = run.store.tables, run.store.projects.all()
    names = run.store.projects.labels()
    return [
        ProjectFacts(
            each.project_id,
            each.name,
            names[each.project_id],
            each.identity,
            each.paths,
            tables.open(each.project_id, "edges").count(),
            tables.open(each.project_id, "passages").count(),
        )
        for each in projects
    ]


def _of_sessions(run: Run, memories: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return METRICS and SESSIONS of every session."""
    rows, sessions = [METRICS.empty()], [SESSIONS.empty()]
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "metrics"):
            if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
                continue
            events = [run.store.lake.read(EVENTS, part) for part in run.readings.parts(scope)]
            turns = run.readings.turns(scope)
            rows.append(session_metrics(turns, pa.concat_tables(events), run.policy))
            own = pc.equal(memories["project_id"], pa.scalar(scope))
            sessions.append(session_rows(turns, memories.filter(own)))
    return pa.concat_tables(rows), pa.concat_tables(sessions)


def _all(run: Run, name: str) -> pa.Table:
    empty = (MEMORIES if name == "memories" else EDGES).empty()
    return pa.concat_tables(
        [empty, *(run.store.tables.open(s, name).read().cast(empty.schema) for s in run.readings.scopes())]
    )
