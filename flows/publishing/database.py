"""
What `memory.duckdb` is made from: tables and counts of every scope, and the snapshots of those that stayed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.briefs import outcomes_about, telling_order
from cortex.flows.run.run import Run
from cortex.hooks.evidence.statements import outcome_parts
from cortex.storage.lake.manifest import Output
from cortex.storage.published.catalogue import projects_document
from cortex.storage.published.published import SNAPSHOTS, SnapshotFile, SnapshotRows
from cortex.storage.store import DATABASE
from cortex.transforms.errors import FileDamaged
from cortex.transforms.extract.events import sent_prompts, without_wrapping
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import (
    CALLS,
    EDGES,
    EVENTS,
    GLOBAL_SCOPE,
    MEMORIES,
    METRICS,
    OUTCOMES,
    POLICY_TABLES,
    PROJECTS,
    SESSIONS,
    TELLING_ORDER,
    TURNS,
    USES,
    UTC_US,
    Row,
    Table,
    values,
)
from cortex.transforms.views.metrics import (
    TURN_COLUMNS_OF_INPUTS,
    TURN_COLUMNS_OF_USE,
    memory_names,
    metrics_since,
    session_metrics,
    session_uses,
    showings_in,
    still_counted,
    use_inputs,
)
from cortex.transforms.words.facts import Vocabulary
from cortex.transforms.words.sentences import shortened

# -- What the last snapshots hold of scopes that have not changed since: a run makes only what it touched.

# Raise it when the code that makes snapshots makes other rows of the same inputs.
SNAPSHOTS_VERSION = "4"
# Snapshots of what the tables hold on a day; the others follow from what was said alone.
OF_TABLES = (MEMORIES, EDGES, PROJECTS)
OF_SESSIONS = (METRICS, SESSIONS)
# Counted again for the sessions that went on alone.
BY_SESSION = (USES,)
# These follow from the repository too, as the brief does.
WITH_BRIEF = (OUTCOMES, TELLING_ORDER)


@dataclass(frozen=True)
class Snapshots:
    """
    The last snapshots, by table; of a scope their rows are what a run would make again, or are not given.

    `fingerprints` has one of what each scope's rows are made from in this run, by table and scope; without it
    they are not reused.
    """

    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, SnapshotFile] = field(default_factory=dict)

    def rows_of(self, table: Table, scope: str) -> pa.Table | None:
        """Return a scope's rows; None if they are to be made."""
        file, state = self.files.get(table.name), self.fingerprints.get(table.name, {}).get(scope)
        if file is None or state is None or file.fingerprints.get(scope) != state:
            return None
        return file.rows_of(scope)

    def former_rows_of(self, table: Table, scope: str) -> pa.Table:
        """Return the rows that a scope had when they were last made, whatever has changed since."""
        file = self.files.get(table.name)
        rows = file.rows_of(scope) if file is not None else None
        return table.empty() if rows is None else rows

    def row_of(self, table: Table, scope: str) -> Row | None:
        """Return the one row of a scope; None if it is to be reusable."""
        rows = self.rows_of(table, scope)
        return rows.to_pylist()[0] if rows is not None and rows.num_rows == 1 else None


def last_snapshots(run: Run) -> Snapshots:
    """Return what can be reused of the published snapshots; a scope that failed keeps nothing of them."""
    reusable = (*OF_TABLES, *OF_SESSIONS, *BY_SESSION, *WITH_BRIEF)
    fingerprints = {table.name: _fingerprints_of(run, table) for table in reusable}
    files = {table.name: run.store.published.snapshot(table) for table in reusable}
    return Snapshots(fingerprints, files)


def _fingerprints_of(run: Run, table: Table) -> dict[str, str]:
    outputs, states = run.ledger.notes.outputs, {}

    def noted_of(scope: str) -> list[str]:
        return [outputs.get(Output(stage, scope), "") for stage in ("embed", "link", "decay")]

    for scope in run.readings.scopes():
        noted = noted_of(scope)
        if scope in run.outcome.failed or not all(noted):
            continue
        version = (SNAPSHOTS_VERSION, str(table.version))
        state = [run.fingerprints.inputs(scope)] if table in OF_SESSIONS else noted
        if table in BY_SESSION:
            calls = (run.store.lake.fingerprint(CALLS, part) for part in run.readings.parts(scope))
            state = [*noted, *noted_of(GLOBAL_SCOPE), *calls]  # sessions are shown what holds everywhere too
        if table in WITH_BRIEF and scope != GLOBAL_SCOPE:
            rendered = outputs.get(Output("render", scope))
            if rendered is None or (table is TELLING_ORDER and not run.is_read_by_model(scope)):
                continue
            state = [*noted, rendered]
        states[scope] = _metrics_state(run, scope) if table is METRICS else content_id(*version, *state)
    return states


def _metrics_state(run: Run, scope: str, generation: int | None = None) -> str:
    """Return a fingerprint of what a scope's METRICS are made from, as of a generation of the lake."""
    lake, parts = run.store.lake, run.readings.parts(scope)
    if generation is None:
        files = [
            file for part in parts for name in (TURNS, EVENTS) for file in lake.manifest.live(name.name, part)
        ]
        generation = max((file.generation for file in files), default=0)
    turn_files = [lake.fingerprint(TURNS, part, until=generation) for part in parts]
    version = (SNAPSHOTS_VERSION, str(METRICS.version), run.policy.fingerprint)
    return f"{generation}:{content_id(*version, *parts, *turn_files)}"


NOTHING_KNOWN = Snapshots()


# -- What the store holds, for people who look around: its sessions with their results, its projects.

# How much of a session's first prompt is shown if its result is unknown.
FIRST_PROMPT_CHARS = 120

_TYPED = ("prompt", "command")
_IN_ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    ("said_at", "ascending"),
    ("line", "ascending"),
]


def session_rows(turns: pa.Table, memories: pa.Table) -> pa.Table:
    """
    Return SESSIONS, one row a session, ordered by project and session.

    Takes TURNS of one project, each turn once, and its MEMORIES, whose outcome records
    give the result of a session. Subagents count to their session but type no prompts.
    """
    outcomes, begun = _outcomes(memories), _first_prompts(turns)
    branches = _last_branches(turns)
    counts = turns.group_by(["project_id", "session_id"], use_threads=False).aggregate(
        [("said_at", "min"), ("said_at", "max")]
    )
    in_time = counts.sort_by(
        [("project_id", "ascending"), ("said_at_min", "ascending"), ("session_id", "ascending")]
    )
    numbers: dict[tuple[str, str], int] = {}
    for _, group in groupby(in_time.to_pylist(), key=itemgetter("project_id")):
        numbers |= {(row["project_id"], row["session_id"]): at for at, row in enumerate(group, start=1)}
    rows = []
    for row in counts.sort_by([("project_id", "ascending"), ("session_id", "ascending")]).to_pylist():
        session_id = row["session_id"]
        parts, prompts = outcomes.get(session_id, {}), begun.get(session_id, [])
        rows.append(
            {
                "project_id": row["project_id"],
                "session_id": session_id,
                "number": numbers[row["project_id"], session_id],
                "began_at": row["said_at_min"],
                "ended_at": row["said_at_max"],
                "git_branch": branches.get(session_id),
                "prompts": len(prompts),
                "goal": parts.get("goal"),
                "outcome": parts.get("outcome"),
                "still_open": parts.get("open"),
                "first_prompt": next((words for words in prompts if words), None),
            }
        )
    return SESSIONS.of(rows)


def _first_prompts(turns: pa.Table) -> dict[str, list[str]]:
    """Return the beginnings of what a person said in each session, in its order."""
    typed = pc.and_(pc.is_in(turns["kind"], pa.array(_TYPED)), pc.is_null(turns["agent_id"]))
    sent = pa.array([name for name, is_persons in sent_prompts(turns).items() if is_persons], pa.string())
    rows = turns.filter(pc.or_(typed, pc.is_in(turns["turn_id"], sent)))
    begun: dict[str, list[str]] = {}
    for row in rows.select(["session_id", "said_at", "line", "text"]).sort_by(_IN_ORDER).to_pylist():
        words = " ".join(without_wrapping(row["text"])[: 4 * FIRST_PROMPT_CHARS].split())
        begun.setdefault(row["session_id"], []).append(shortened(words, FIRST_PROMPT_CHARS))
    return begun


def _last_branches(turns: pa.Table) -> dict[str, str]:
    named = turns.filter(pc.is_valid(turns["git_branch"]))
    ordered = named.select(["session_id", "git_branch", "said_at", "line"]).sort_by(_IN_ORDER)
    last = ordered.group_by("session_id", use_threads=False)
    rows = last.aggregate([("git_branch", "last")]).to_pylist()
    return {row["session_id"]: row["git_branch_last"] for row in rows}


def _outcomes(memories: pa.Table) -> dict[str, dict[str, str]]:
    """Return the parts of the newest outcome record of each session."""
    columns = ["memory_type", "text", "updated_at", "evidence"]
    rows = [row for row in memories.select(columns).to_pylist() if row["memory_type"] == "outcome"]
    rows.sort(key=lambda row: (row["updated_at"], row["text"]))
    parts = [(row, outcome_parts(row["text"]) or {"outcome": row["text"]}) for row in rows]
    return {place["session_id"]: known for row, known in parts for place in row["evidence"]}


@dataclass(frozen=True)
class ProjectFacts:
    """A project as it is noted, and how much its tables hold."""

    project_id: str
    name: str
    label: str
    identity: str
    folders: Sequence[str]
    edges: int
    passages: int
    is_read_by_model: bool


def project_rows(
    projects: Sequence[ProjectFacts], statuses: Mapping[str, Mapping[str, int]], sessions: pa.Table
) -> pa.Table:
    """
    Return PROJECTS, one row a project in the order given.

    Takes how many memories have which status, by scope, and all SESSIONS.
    """
    ended: dict[str, list[datetime | None]] = {}
    for row in sessions.select(["project_id", "ended_at"]).to_pylist():
        ended.setdefault(row["project_id"], []).append(row["ended_at"])
    return PROJECTS.of(
        [
            _project_row(each, statuses.get(each.project_id, {}), ended.get(each.project_id, []))
            for each in projects
        ]
    )


def _project_row(each: ProjectFacts, statuses: Mapping[str, int], ended: Sequence[datetime | None]) -> Row:
    known, active = sum(statuses.values()), statuses.get("active", 0)
    return {
        "project_id": each.project_id,
        "name": each.name,
        "label": each.label,
        "identity": each.identity,
        "folders": list(each.folders),
        "sessions": len(ended),
        "last_worked_at": max((at for at in ended if at is not None), default=None),
        "active": active,
        "faded": known - active,
        "edges": each.edges,
        "passages": each.passages,
        "is_read_by_model": each.is_read_by_model,
    }


# -- What `memory.duckdb` is made from: the tables of every scope and the counts of its sessions.


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
            "uses": lambda: _uses(self._run, self._known),
            "outcomes": lambda: _outcomes_of_decisions(self._run, self._known),
            "sessions": self._sessions,
            "projects": lambda: [self._projects],
            "telling_order": lambda: _telling_orders(self._run, self._known),
            **{table.name: _rules(self._run, table) for table in POLICY_TABLES},
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
            run.is_read_by_model(each.project_id),
        )
        for each in projects
    ]


def _of_sessions(run: Run, known: Snapshots) -> tuple[pa.Table, pa.Table]:
    """Return METRICS and SESSIONS of every session."""
    rows, sessions = [METRICS.empty()], [SESSIONS.empty()]
    for scope in run.readings.scopes():
        with run.outcome.isolated(scope, "metrics"):
            if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
                continue
            counted, listed = known.rows_of(METRICS, scope), known.rows_of(SESSIONS, scope)
            if counted is not None and listed is not None:
                rows.append(counted)
                sessions.append(listed)
                continue
            events = [run.store.lake.read(EVENTS, part) for part in run.readings.parts(scope)]
            turns = run.readings.turns(scope)
            rows.append(_metrics(run, known, scope, turns, pa.concat_tables(events)))
            outcomes = run.store.tables.open(scope, MEMORIES.name).read(where={"memory_type": ["outcome"]})
            sessions.append(session_rows(turns, outcomes))
    return pa.concat_tables(rows), pa.concat_tables(sessions)


def _metrics(run: Run, known: Snapshots, scope: str, turns: pa.Table, events: pa.Table) -> pa.Table:
    """Return the METRICS of a project; those of sessions that nothing new bears on are taken over."""
    lake, parts = run.store.lake, run.readings.parts(scope)
    noted = known.files[METRICS.name].fingerprints.get(scope, "") if METRICS.name in known.files else ""
    generation = int(noted.partition(":")[0]) if ":" in noted else -1
    if generation < 0 or noted != _metrics_state(run, scope, generation):
        return session_metrics(turns, events, run.policy)
    changed = {
        name
        for part in parts
        for table in (TURNS, EVENTS)
        for name in lake.sessions_since(table, part, generation)
    }
    return metrics_since(known.former_rows_of(METRICS, scope), changed, turns, events, run.policy)


def _pieces(run: Run, table: Table, known: Snapshots) -> Iterator[pa.Table]:
    for scope in run.readings.scopes():
        rows = known.rows_of(table, scope)
        yield run.store.tables.open(scope, table.name).read().cast(table.arrow) if rows is None else rows


def _outcomes_of_decisions(run: Run, known: Snapshots) -> Iterator[pa.Table]:
    """Yield the OUTCOMES of each project's decisions."""
    for scope in run.readings.scopes():
        if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
            continue
        rows = known.rows_of(OUTCOMES, scope)
        if rows is None:
            memories = run.store.tables.open(scope, MEMORIES.name).read()
            rows = outcomes_about(run, scope, memories)
        yield rows


def _telling_orders(run: Run, known: Snapshots) -> Iterator[pa.Table]:
    """Yield the TELLING_ORDER of each project that a language model has put in order."""
    for scope in run.readings.scopes():
        if scope == GLOBAL_SCOPE or scope in run.outcome.failed or not run.is_read_by_model(scope):
            continue
        rows = known.rows_of(TELLING_ORDER, scope)
        yield telling_order(run, scope) if rows is None else rows


def _rules(run: Run, table: Table) -> pa.Table:
    return run.policy.tables[table.name].select(table.arrow.names).cast(table.arrow)


def _uses(run: Run, known: Snapshots) -> Iterator[pa.Table]:
    """Yield the USES of each project; only sessions that went on, or were shown more, are read again."""
    vocabulary = Vocabulary.of(run.policy)
    for scope in run.readings.scopes():
        if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
            continue
        rows = known.rows_of(USES, scope)
        yield _counted_uses(run, known, scope, vocabulary) if rows is None else rows


def _counted_uses(run: Run, known: Snapshots, scope: str, vocabulary: Vocabulary) -> pa.Table:
    lake, parts = run.store.lake, run.readings.parts(scope)
    calls = pa.concat_tables([CALLS.empty(), *(lake.read(CALLS, part) for part in parts)])
    if run.readings.is_past:
        calls = calls.filter(pc.less_equal(calls["called_at"], pa.scalar(run.now, UTC_US)))
    showings = showings_in(calls)
    if not showings.num_rows:
        return USES.empty()
    ids = sorted(set(values(showings, "memory_id")))
    read = [
        run.store.tables.open(each, MEMORIES.name).read(["memory_id", "text", "files"], {"memory_id": ids})
        for each in (scope, GLOBAL_SCOPE)
    ]
    memories = [row for rows in read for row in rows.to_pylist()]
    names = memory_names(memories, vocabulary)
    held = pa.array(sorted({row["memory_id"] for row in memories}), pa.string())
    showings = showings.filter(pc.is_in(showings["memory_id"], held))

    def turns_of(sessions: set[str], columns: list[str]) -> pa.Table:
        # With the copies that forks carry: what one session did depends on no other.
        turns = pa.concat_tables([lake.read(TURNS, part, columns, sessions) for part in parts])
        is_past = pc.less_equal(turns["said_at"], pa.scalar(run.now, UTC_US))
        return turns.filter(is_past) if run.readings.is_past else turns

    states = turns_of(set(values(showings, "session_id")), TURN_COLUMNS_OF_INPUTS)
    inputs = use_inputs(showings, names, states, run.policy, SNAPSHOTS_VERSION)
    # An erasure rewrites turns in place: they keep their ids.
    before = USES.empty() if scope in lake.notes.to_wipe else known.former_rows_of(USES, scope)
    kept = still_counted(before, inputs)
    fresh = inputs.keys() - set(values(kept, "session_id"))
    counted = showings.filter(pc.is_in(showings["session_id"], pa.array(sorted(fresh), pa.string())))
    turns = turns_of(fresh, TURN_COLUMNS_OF_USE)
    rows = pa.concat_tables([kept, session_uses(counted, names, turns, run.policy, scope, inputs)])
    return rows.sort_by([("session_id", "ascending"), ("memory_id", "ascending")])
