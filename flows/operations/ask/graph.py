"""What stands around a memory, a file or a tag: the memories near it and the relations between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.flows.operations.ask.listing import related
from cortex.flows.recalling.facets import (
    Columns,
    both,
    first_places,
    items_of,
    places_of,
    rows_with,
)
from cortex.storage.published.catalogue import Catalogue
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.schemas import Row, values

# More than these cannot be told apart in a picture.
MOST_NODES = 40
MOST_GRAPH_STEPS = 3

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
    more than MOST_NODES.
    """

    middle: str
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    is_cut: bool


def around_memory(context: Context, memory_id: str, *, steps: int = 2) -> GraphAround:
    """Return what is within `steps` relations of a memory, itself with distance 0. Raises NotFound."""
    if not 1 <= steps <= MOST_GRAPH_STEPS:
        raise UsageError(f"{steps} steps are out of range.", f"Use 1 to {MOST_GRAPH_STEPS}.")
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
    best = first_places(rows, named, MOST_NODES, rank="descending", memory_id="ascending")
    ids = values(rows.take(best), "memory_id")
    known = _rows_of(catalogue, ids)
    nodes = [_node(known[name], 1, file or tag) for name in ids if name in known]
    edges = _among(catalogue.read_table("edges", _EDGE_COLUMNS), ids).to_pylist()
    return GraphAround(file or tag, nodes, _edges_of(edges, set(known)), len(named) > len(ids))


def _grown(catalogue: Catalogue, middle: str, steps: int) -> GraphAround:
    """Return the neighbourhood, breadth first, along the strongest relations first."""
    edges = catalogue.read_table("edges", _EDGE_COLUMNS)
    reached: dict[str, tuple[int, str]] = {middle: (0, "")}
    ring = [middle]
    for distance in range(1, steps + 1):
        near, following = _neighbours(edges, ring), []
        for name in ring:
            for other in near.get(name, ()):
                if other not in reached:
                    reached[other] = (distance, name)
                    following.append(other)
        ring = following
        if len(reached) > MOST_NODES:  # those of a further ring would not be shown
            break
    ids = list(reached)[:MOST_NODES]
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


def _neighbours(edges: pa.Table, ring: Sequence[str]) -> dict[str, list[str]]:
    """Return for each of some memories the other ends of its edges, the strongest first."""
    near: dict[str, list[str]] = {}
    for edge in _ordered(_at(edges, ring)).to_pylist():
        near.setdefault(edge["source_id"], []).append(edge["target_id"])
        near.setdefault(edge["target_id"], []).append(edge["source_id"])
    return near


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
