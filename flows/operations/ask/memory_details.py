"""One memory with all that is kept of it: its evidence and history, its links, what stands around it."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.ask.browse import Columns, both, items_of, places_of, rows_with, top_positions
from cortex.flows.operations.ask.listing import related
from cortex.flows.operations.ids import several, typed_id
from cortex.flows.operations.lookup import (
    SURELY_AN_ID_CHARS,
    is_memory_id,
    memory_by_id,
    memory_of,
    scopes_of,
)
from cortex.flows.recalling.session_context import shown_memories
from cortex.flows.run.source import journal_parts_of, parts_of
from cortex.storage.lake.lake import each_key_once
from cortex.storage.published.catalogue import Catalogue
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Recall, entries_in
from cortex.transforms.memory.lifecycle import clock_of
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import TURNS, Row, values

MEMORY, TURN = "memory", "turn"
_OF_TURN = ["passage_id", "project_id", "session_id", "kind", "text", "said_at", "file", "line", "trust"]


@dataclass(frozen=True)
class Expanded:
    """A memory as a row of MEMORIES, or a turn as its passages, in the order in which they were said."""

    kind: str
    rows: Sequence[Row]
    project: str


def expand(context: Context, target: str, *, project: str | None = None) -> Expanded | None:
    """
    Return the memory or turn whose id begins with `target`; None if that is not an id.

    Raises NotFound, and UsageError if several ids begin with it.
    """
    if not is_memory_id(target):
        return None
    store = context.open_store()
    try:
        row = memory_by_id(context, store, target)
    except NotFound:
        row = None
    if row is not None:
        return Expanded(MEMORY, [row], store.projects.label_of(row["project_id"]))
    word = typed_id(target)
    tables = [
        store.tables.open(scope, "passages").read(_OF_TURN) for scope in scopes_of(context, store, project)
    ]
    rows = [row for table in tables for row in _begin_with(word, table)]
    if not rows:
        if word.isalpha() or len(word) < SURELY_AN_ID_CHARS:  # "facade" is a word too
            return None
        raise NotFound(f"no memory or turn has an id that begins with '{word}'.", "Ask in words instead.")
    texts = {row["passage_id"]: row["text"] for row in rows}
    if len(texts) > 1:
        raise several(word, "turns", texts)
    return Expanded(TURN, rows, store.projects.label_of(rows[0]["project_id"]))


def _begin_with(word: str, passages: pa.Table) -> list[Row]:
    rows: list[Row] = passages.filter(pc.starts_with(passages["passage_id"], word)).to_pylist()
    return rows


# -- The neighbourhood of a memory in breadth: what is linked to it, and what is linked to that.


@dataclass(frozen=True)
class Linked:
    """
    A memory `distance` edges away, reached from `via_id` by an edge of that type and strength (0 to 1).

    `is_source` says that the edge goes from this memory to the one it was reached from.
    """

    memory_id: str
    distance: int
    via_id: str
    edge_type: str
    strength: float
    is_source: bool


def linked_to(edges: pa.Table, memory_id: str, *, steps: int) -> list[Linked]:
    """
    Return what is within `steps` EDGES of a memory, in either direction, each once: the nearest first.

    Of equal distance the strongest edge comes first, then the smaller id; of several edges to one memory the
    strongest counts.
    """
    reached: dict[str, Linked] = {}
    frontier = [memory_id]
    for distance in range(1, steps + 1):
        best: dict[str, Linked] = {}
        for linked in _beyond(edges, frontier, distance):
            before = best.get(linked.memory_id)
            is_known = linked.memory_id == memory_id or linked.memory_id in reached
            if not is_known and (before is None or _order(linked) < _order(before)):
                best[linked.memory_id] = linked
        reached.update({each.memory_id: each for each in sorted(best.values(), key=_order)})
        frontier = list(best)
    return list(reached.values())


def _beyond(edges: pa.Table, frontier: list[str], distance: int) -> list[Linked]:
    ends = pa.array(frontier, pa.string())
    there = []
    for own, other in (("source_id", "target_id"), ("target_id", "source_id")):
        rows: Sequence[Mapping[str, object]] = edges.filter(pc.is_in(edges[own], ends)).to_pylist()
        there += [
            Linked(
                str(row[other]),
                distance,
                str(row[own]),
                str(row["edge_type"]),
                float(str(row["strength"])),
                other == "source_id",
            )
            for row in rows
        ]
    return there


def _order(linked: Linked) -> tuple[float, str, str, str]:
    return (-linked.strength, linked.memory_id, linked.via_id, linked.edge_type)


# -- How sure a memory was over time: drawn from when it was said and its project's clock.

CURVE_POINTS = 60
DAY_MICROSECONDS = 86_400_000_000


def confidence_curve(
    memory: Row, clock: pa.Table, policy: Policy, now: datetime
) -> list[tuple[datetime, float]]:
    """
    Return (instant, confidence from 0 to 1) from when a memory was first said up to `now`, in time order.

    Takes one row of MEMORIES and its scope's clock as `lifecycle.clock_of` gives it. Each time that it was
    said sets it back to its initial confidence; what its initial confidence was before the last time is not
    known, so that is taken for all of them. The half-life is today's.
    """
    times = sorted({memory["created_at"], memory["updated_at"], *_dates(memory)})
    begin, half_life_days = times[0], _half_life_days(memory, policy)
    span = max(now - begin, timedelta(hours=1))
    regular = [begin + span * at / (CURVE_POINTS - 1) for at in range(CURVE_POINTS)]
    before = [at - timedelta(microseconds=1) for at in times[1:]]
    instants = sorted({at for at in (*regular, *times, *before) if begin <= at <= now} or {begin})
    worked = _Worked(clock)
    initial = memory["initial_confidence"]
    curve = []
    for at in instants:
        since = times[bisect_right(times, at) - 1]
        days = max(worked(at) - worked(since), 0) / DAY_MICROSECONDS
        curve.append((at, initial if half_life_days is None else initial * 0.5 ** (days / half_life_days)))
    return curve


def _dates(memory: Row) -> list[datetime]:
    return [place["said_at"] for place in memory["evidence"] if place["said_at"]]


def _half_life_days(memory: Row, policy: Policy) -> float | None:
    """Return in how many days of work the memory loses half; None for one that does not fade."""
    rows = policy.tables["memory_types"].select(["memory_type", "half_life_days"]).to_pylist()
    days = {row["memory_type"]: row["half_life_days"] for row in rows}[memory["memory_type"]]
    if memory["is_pinned"] or days is None:
        return None
    growth = policy.threshold("half_life_growth")
    is_frequent = memory["access_count"] > policy.threshold("frequent_access_count")
    is_central = memory["centrality"] > policy.threshold("central_above_centrality")
    return float(days * (growth if is_frequent else 1) * (growth if is_central else 1))


class _Worked:
    """How long a scope had been worked on at an instant, in microseconds."""

    def __init__(self, clock: pa.Table) -> None:
        self._at: Sequence[datetime] = values(clock, "active_at")
        self._worked: Sequence[int] = values(clock, "worked_us")
        self._runs: Sequence[int] = values(clock, "runs_us")

    def __call__(self, at: datetime) -> float:
        row = bisect_right(self._at, at) - 1
        if row < 0:
            return 0
        since = (at - self._at[row]) / timedelta(microseconds=1)
        return self._worked[row] + min(since, self._runs[row])


@dataclass(frozen=True)
class Neighbourhood:
    """
    A memory and what is linked to it, the nearest first; `memories` are the rows of all, by id.

    `left_out` counts those that the limit left out.
    """

    memory: Row
    linked: Sequence[Linked]
    memories: Mapping[str, Row]
    left_out: int


def neighbourhood_of(context: Context, target: str, *, steps: int = 1, limit: int = 20) -> Neighbourhood:
    """
    Return what is within `steps` links of the memory whose id begins with `target`; nothing is reinforced.

    What is no longer valid is not shown, and nothing beyond it is reached by it alone. Raises NotFound,
    UsageError for several.
    """
    store = context.open_store()
    memory = memory_of(context, store, target)
    scope, own_id = memory["project_id"], memory["memory_id"]
    edges = store.tables.open(scope, "edges").read(["source_id", "target_id", "edge_type", "strength"])
    linked = linked_to(edges, own_id, steps=steps)
    rows = shown_memories(store.tables, scope, sorted(each.memory_id for each in linked))
    # The code that a description leads to has no words of its own to be shown by: its file stands for it.
    code = {each.memory_id for each in linked if each.edge_type == "source_of"}
    where = {"memory_id": sorted(code), "memory_type": ["code"], "status": ["active"]}
    for row in store.tables.open(scope, "memories").read(where=where).to_pylist() if code else ():
        rows.append({**row, "text": ", ".join(row["files"])})
    memories = {own_id: memory, **{row["memory_id"]: row for row in rows}}
    shown = [each for each in linked if each.memory_id in memories and each.via_id in memories]
    return Neighbourhood(memory, shown[:limit], memories, max(0, len(shown) - limit))


# -- What lies behind a memory: the turns around its evidence, what was done to it, how sure it was.

# What a person reads around a quotation: results of tools and thoughts are long and say little of it.
_SPOKEN_KINDS = frozenset(("prompt", "command", "shell", "text", "tool_call", "rejection", "choice", "plan"))
TURNS_AROUND = 2
PLACES_SHOWN = 6


@dataclass(frozen=True)
class SpokenTurn:
    """One turn near a memory's evidence; `is_cited` where the memory rests on it."""

    turn_id: str
    kind: str
    trust: str
    said_at: datetime | None
    tool_name: str | None
    text: str
    line: int
    is_cited: bool


@dataclass(frozen=True)
class EvidencePlace:
    """One place that a memory rests on, with the turns around it in their order."""

    session_id: str
    file: str
    lines: Sequence[int]
    layer: str
    said_at: datetime | None
    git_branch: str | None
    turns: Sequence[SpokenTurn]


@dataclass(frozen=True)
class JournaledChange:
    """What was done to a memory on purpose, or by a run: a kind of the journal, by whom, and how."""

    at: datetime
    kind: str
    actor: str
    detail: str


@dataclass(frozen=True)
class Relative:
    """A memory that replaced another or was replaced by it; `how` is superseded or merged."""

    memory_id: str
    text: str
    how: str


@dataclass(frozen=True)
class History:
    """
    Behind a memory: places of its evidence (at most PLACES_SHOWN), changes, recalls and what replaced what.

    `curve` is how sure it was, 0 to 1, by instant.
    """

    places: Sequence[EvidencePlace]
    changes: Sequence[JournaledChange]
    recalled_at: Sequence[datetime]
    replaced: Sequence[Relative]
    replaced_by: Sequence[Relative]
    curve: Sequence[tuple[datetime, float]]


def history_of(context: Context, memory: Row) -> History:
    """Return what lies behind a row of MEMORIES. Raises FileDamaged, KeyUnavailable."""
    run = read_only_run(context, with_model=False)
    scope, store = memory["project_id"], run.store
    journal = pa.concat_tables([store.journal.read(part) for part in journal_parts_of(store, scope)])
    replaced, by = _relatives(context, memory)
    clock = clock_of(run.readings.activity(scope), run.policy, run.now)
    return History(
        _places(store, scope, memory["evidence"][:PLACES_SHOWN]),
        _changes_to(journal, memory["memory_id"]),
        _recalls(journal, memory["memory_id"]),
        replaced,
        by,
        confidence_curve(memory, clock, run.policy, run.now),
    )


def words_at_line(context: Context, session: Row, line: int) -> EvidencePlace:
    """
    Return what was said at a line of a session of SESSIONS, or last before it, and around that.

    Raises NotFound for a line that the session has not, FileDamaged, KeyUnavailable.
    """
    store, name = read_only_run(context, with_model=False).store, session["session_id"]
    turns = _spoken_turns(store, session["project_id"], {name}).get(name, [])
    before = [row for row in turns if row["line"] <= line]
    if not before or line > max(row["line"] for row in turns):
        raise NotFound(f"session '{name[:8]}' has no line {line}.", f"Look: cortex show {name[:8]}")
    cited = max(before, key=lambda row: row["line"])
    place = {name: cited[name] for name in ("turn_id", "session_id", "file", "git_branch", "said_at")}
    return _place({**place, "lines": [cited["line"]], "layer": ""}, turns)


def _places(store: Store, scope: str, evidence: Sequence[Row]) -> list[EvidencePlace]:
    rows = _spoken_turns(store, scope, {place["session_id"] for place in evidence})
    return [_place(place, rows.get(place["session_id"], [])) for place in evidence]


def _spoken_turns(store: Store, scope: str, sessions: set[str]) -> dict[str, list[Row]]:
    """Return what was said in sessions of a project, by session, in its order."""
    rows: dict[str, list[Row]] = {}
    if sessions:
        read = [store.lake.read(TURNS, part, sessions=sessions) for part in parts_of(store, scope)]
        for row in each_key_once(TURNS, pa.concat_tables(read)).to_pylist():
            if row["kind"] in _SPOKEN_KINDS:
                rows.setdefault(row["session_id"], []).append(row)
    for turns in rows.values():
        turns.sort(key=lambda row: (row["agent_id"] or "", row["file"], row["line"], row["block"]))
    return rows


def _place(place: Row, turns: Sequence[Row]) -> EvidencePlace:
    cited = {at for at, row in enumerate(turns) if _is_cited(row, place)}
    near = sorted({n for at in sorted(cited)[:3] for n in range(at - TURNS_AROUND, at + TURNS_AROUND + 1)})
    spoken = [
        SpokenTurn(
            row["turn_id"],
            row["kind"],
            row["trust"],
            row["said_at"],
            row["tool_name"],
            row["text"],
            row["line"],
            at in cited,
        )
        for at, row in ((at, turns[at]) for at in near if 0 <= at < len(turns))
    ]
    branch, said_at = place["git_branch"], place["said_at"]
    lines, layer = place["lines"], place["layer"]
    return EvidencePlace(place["session_id"], place["file"], lines, layer, said_at, branch, spoken)


def _is_cited(turn: Row, place: Row) -> bool:
    is_named = bool(turn["turn_id"] == place["turn_id"])
    return is_named or (turn["file"] == place["file"] and turn["line"] in place["lines"])


def _changes_to(journal: pa.Table, memory_id: str) -> list[JournaledChange]:
    own = journal.filter(pc.equal(journal["memory_id"], pa.scalar(memory_id)))
    rows = own.sort_by([("recorded_at", "descending"), ("entry_id", "ascending")]).to_pylist()
    return [JournaledChange(row["recorded_at"], row["kind"], row["actor"], "") for row in rows]


def _recalls(journal: pa.Table, memory_id: str) -> list[datetime]:
    recalls = entries_in(journal, Recall)
    return sorted(
        (row["recorded_at"] for row, entry in recalls if memory_id in entry.memory_ids), reverse=True
    )


def _relatives(context: Context, memory: Row) -> tuple[list[Relative], list[Relative]]:
    """Return what a memory replaced, and what replaced it."""
    catalogue, columns = context.open_catalogue(), ("memory_id", "text")
    replaced = [
        Relative(row["memory_id"], row["text"], how)
        for how, column in (("superseded", "superseded_by"), ("merged", "merged_into"))
        for row in catalogue.read("memories", columns, {column: [memory["memory_id"]]}, order="memory_id")
    ]
    after = {memory["superseded_by"]: "superseded", memory["merged_into"]: "merged"}
    ids = [name for name in after if name]
    newer = catalogue.read("memories", columns, {"memory_id": ids}, order="memory_id") if ids else []
    return replaced, [Relative(row["memory_id"], row["text"], after[row["memory_id"]]) for row in newer]


# -- What stands around a memory, a file or a tag: the memories near it and the relations between them.

# More than these cannot be told apart in a picture.
MAX_NODES = 40
MAX_GRAPH_STEPS = 3

_COLUMNS = ["memory_id", "memory_type", "text"]
_EDGE_COLUMNS = ["edge_id", "source_id", "target_id", "edge_type", "strength"]


@dataclass(frozen=True)
class GraphNode:
    """A memory `distance` steps from the middle of a neighbourhood; `parent` is the one it was reached by."""

    memory_id: str
    memory_type: str
    text: str
    distance: int
    parent: str


@dataclass(frozen=True)
class GraphEdge:
    """A relation between two nodes; `strength` is 0 to 1."""

    source: str
    target: str
    edge_type: str
    strength: float


@dataclass(frozen=True)
class GraphAround:
    """
    Nodes by distance, the strongest relations first, and the edges between them.

    `middle` is the id of a memory, or the file or tag itself, which then is no node. `is_cut` where there are
    more than MAX_NODES.
    """

    middle: str
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    is_cut: bool


def around_memory(context: Context, memory_id: str, *, steps: int = 2) -> GraphAround:
    """Return what is within `steps` relations of a memory, itself with distance 0. Raises NotFound."""
    if not 1 <= steps <= MAX_GRAPH_STEPS:
        raise UsageError(f"{steps} steps are out of range.", f"Use 1 to {MAX_GRAPH_STEPS}.")
    catalogue = context.open_catalogue()
    if not catalogue.count("memories", {"memory_id": [memory_id]}):
        raise NotFound(f"no memory has the id '{memory_id}'.", "Find it under Search.")
    return _grown(catalogue, memory_id, steps)


def around_word(context: Context, *, file: str = "", tag: str = "") -> GraphAround:
    """Return the memories that name a file by a part of its path, or have a tag, and how they are related."""
    catalogue = context.open_catalogue()
    columns = ["memory_id", "status", "rank", "files" if file else "tags"]
    rows = catalogue.read_table("memories", columns)
    items = items_of(rows, columns[-1])
    is_meant = (
        pc.match_substring(items[0], file, ignore_case=True)
        if file
        else pc.equal(pc.utf8_lower(items[0]), pa.scalar(tag.lower(), pa.string()))
    )
    masks: list[Columns] = [
        rows_with(items, is_meant, rows.num_rows),
        pc.equal(rows["status"], pa.scalar("active")),
    ]
    named = places_of(both(masks, rows.num_rows))
    best = top_positions(rows, named, MAX_NODES, rank="descending", memory_id="ascending")
    ids = values(rows.take(best), "memory_id")
    known = _rows_of(catalogue, ids)
    nodes = [_node(known[name], 1, file or tag) for name in ids if name in known]
    edges = _among(catalogue.read_table("edges", _EDGE_COLUMNS), ids).to_pylist()
    return GraphAround(file or tag, nodes, _edges_of(edges, set(known)), len(named) > len(ids))


def _grown(catalogue: Catalogue, middle: str, steps: int) -> GraphAround:
    """Return the neighbourhood, breadth first, along the strongest relations first."""
    edges = catalogue.read_table("edges", _EDGE_COLUMNS)
    near = linked_to(edges, middle, steps=steps)
    reached = {middle: (0, ""), **{each.memory_id: (each.distance, each.via_id) for each in near}}
    ids = list(reached)[:MAX_NODES]
    rows = _rows_of(catalogue, ids)
    nodes = [_node(rows[name], *reached[name]) for name in ids if name in rows]
    shown = _among(edges, ids).to_pylist()
    return GraphAround(middle, nodes, _edges_of(shown, set(rows)), len(reached) > len(ids))


def relations_of(context: Context, memory_id: str) -> list[Row]:
    """Return the other ends of a memory's edges with their texts, the strongest first, as `listing.show`."""
    catalogue = context.open_catalogue()
    return related(
        catalogue, memory_id, _at(catalogue.read_table("edges", _EDGE_COLUMNS), [memory_id]).to_pylist()
    )


def _at(edges: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Return the edges with an end among some memories."""
    ends = pa.array(ids, pa.string())
    return edges.filter(pc.or_(pc.is_in(edges["source_id"], ends), pc.is_in(edges["target_id"], ends)))


def _among(edges: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Return the edges with both ends among some memories, the strongest first."""
    ends = pa.array(ids, pa.string())
    return _ordered(
        edges.filter(pc.and_(pc.is_in(edges["source_id"], ends), pc.is_in(edges["target_id"], ends)))
    )


def _ordered(edges: pa.Table) -> pa.Table:
    return edges.sort_by([("strength", "descending"), ("edge_id", "ascending")])


def _rows_of(catalogue: Catalogue, ids: Sequence[str]) -> dict[str, Row]:
    rows = catalogue.read("memories", _COLUMNS, {"memory_id": ids}) if ids else []
    return {row["memory_id"]: row for row in rows}


def _node(row: Row, distance: int, parent: str) -> GraphNode:
    return GraphNode(row["memory_id"], row["memory_type"], row["text"], distance, parent)


def _edges_of(rows: Sequence[Mapping[str, object]], ids: set[str]) -> list[GraphEdge]:
    strongest: dict[frozenset[object], GraphEdge] = {}
    for row in rows:
        ends = frozenset((row["source_id"], row["target_id"]))
        if ends <= ids and len(ends) == 2:
            kind, strength = str(row["edge_type"]), round(float(str(row["strength"])), 4)
            edge = GraphEdge(str(row["source_id"]), str(row["target_id"]), kind, strength)
            strongest.setdefault(ends, edge)
    return list(strongest.values())
