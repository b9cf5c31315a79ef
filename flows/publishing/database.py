"""What `memory.duckdb` is made from: the tables of every scope and the counts of its sessions."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from cortex.flows.publishing.snapshots import NOTHING_KNOWN, Snapshots, last_snapshots
from cortex.flows.run.run import Run
from cortex.storage.published.catalogue import projects_document
from cortex.storage.published.published import SnapshotRows
from cortex.storage.published.published_views import SNAPSHOTS
from cortex.storage.store import DATABASE
from cortex.transforms.errors import FileDamaged
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
)
from cortex.transforms.views.catalogue import ProjectFacts, project_rows, session_rows
from cortex.transforms.views.metrics import session_metrics


def publish_database(run: Run, scopes: Sequence[str], inputs: str) -> None:
    """Publish `memory.duckdb` and the counts; where a file of the lake is damaged the last good ones stay."""
    published, merged = run.store.published, run.store.projects.merged()
    snapshots = last_snapshots(run)
    derived = _Derived(run, snapshots)
    try:
        if not run.outcome.damages:
            published.publish_database(run.store.lake, derived.tables(), merged, snapshots.fingerprints)
    except FileDamaged as error:
        run.outcome.damages.append(error)
    if run.outcome.damages:
        return
    published.publish_catalogue(projects_document(*derived.catalogue()))
    published.publish_counts({scope: derived.statuses[scope]["active"] for scope in scopes})
    run.ledger.note_output(*DATABASE, inputs)


class _Derived:
    """The rows of every snapshot, scope by scope: those of many memories are never in memory together."""

    def __init__(self, run: Run, known: Snapshots) -> None:
        """Count the sessions, before anything is written: a damaged lake leaves the last good snapshots."""
        self._run, self._known = run, known
        self._metrics, self._sessions = _of_sessions(run, known)
        self.statuses: dict[str, Counter[str]] = defaultdict(Counter)

    def tables(self) -> dict[str, SnapshotRows]:
        """Return the rows by name; those of memories are counted as they are written."""
        return {
            "memories": self._memories,
            "edges": lambda: _pieces(self._run, EDGES, self._known),
            "metrics": self._metrics,
            "sessions": self._sessions,
            "projects": lambda: [self._projects],
        }

    def _memories(self) -> Iterator[pa.Table]:
        for rows in _pieces(self._run, MEMORIES, self._known):
            for counted in _counts(rows):
                self.statuses[counted["project_id"]][counted["status"]] += counted["memory_id_count"]
            yield rows

    @cached_property
    def _projects(self) -> pa.Table:
        return project_rows(_facts(self._run, self._known), self.statuses, self._sessions)

    def catalogue(self) -> tuple[list[Row], dict[str, set[str]], tuple[int, int]]:
        """Return what is published of the projects: PROJECTS, the names of each, global counts."""
        statuses = self.statuses[GLOBAL_SCOPE]
        everywhere = statuses["active"], statuses.total() - statuses["active"]
        return self._projects.to_pylist(), self._run.store.projects.all_names(), everywhere


def _counts(memories: pa.Table) -> list[Row]:
    rows = memories.select(["project_id", "status", "memory_id"])
    return rows.group_by(["project_id", "status"]).aggregate([("memory_id", "count")]).to_pylist()


def derived_tables(run: Run, known: Snapshots = NOTHING_KNOWN) -> dict[str, pa.Table]:
    """Return the rows of every snapshot, by name; those that `known` has are not made again."""
    tables = _Derived(run, known).tables()
    return {
        table.name: rows if isinstance(rows, pa.Table) else pa.concat_tables([table.empty(), *rows()])
        for table in SNAPSHOTS
        for rows in [tables[table.name]]
    }


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


def _of_sessions(run: Run, known: Snapshots) -> tuple[pa.Table, pa.Table]:
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
            outcomes = run.store.tables.open(scope, MEMORIES.name).read(where={"memory_type": ["outcome"]})
            sessions.append(session_rows(turns, outcomes))
    return pa.concat_tables(rows), pa.concat_tables(sessions)


def _pieces(run: Run, table: Table, known: Snapshots) -> Iterator[pa.Table]:
    for scope in run.readings.scopes():
        rows = known.rows_of(table, scope)
        yield run.store.tables.open(scope, table.name).read().cast(table.arrow) if rows is None else rows
