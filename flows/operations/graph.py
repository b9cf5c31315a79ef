"""What stands around a memory, a file or a tag: the memories near it and the relations between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortex.flows.context import Context
from cortex.storage.catalogue import Catalogue
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.vocabulary import Row

# More than these cannot be told apart in a picture.
MOST_NODES = 40
MOST_GRAPH_STEPS = 3

_COLUMNS = ["memory_id", "project_id", "memory_type", "status", "text", "rank", "files", "tags"]


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
    known = catalogue.read("memories", _COLUMNS, {"memory_id": [memory_id]})
    if not known:
        raise NotFound(f"no memory has the id '{memory_id}'.", "Find it under Search.")
    edges = catalogue.read(
        "edges", (), {"project_id": [known[0]["project_id"]]}, order="strength desc, edge_id"
    )
    return _grown(catalogue, memory_id, edges, steps)


def around_word(context: Context, *, file: str = "", tag: str = "") -> GraphAround:
    """Return the memories that name a file by a part of its path, or have a tag, and how they are related."""
    word = (file or tag).casefold()
    column = "files" if file else "tags"
    catalogue = context.open_catalogue()
    rows = catalogue.read("memories", _COLUMNS, {"status": ["active"]}, order="rank desc, memory_id")
    named = [row for row in rows if any(_is_meant(word, name, bool(file)) for name in row[column])]
    shown = named[:MOST_NODES]
    ids = [row["memory_id"] for row in shown]
    nodes = [GraphNode(r["memory_id"], r["memory_type"], r["text"], 1, file or tag) for r in shown]
    edges = catalogue.read("edges", (), {"source_id": ids, "target_id": ids}) if ids else []
    return GraphAround(file or tag, nodes, _edges_of(edges, set(ids)), len(named) > len(shown))


def _is_meant(word: str, name: str, is_part: bool) -> bool:
    return word in name.casefold() if is_part else word == name.casefold()


def _grown(catalogue: Catalogue, middle: str, edges: Sequence[Row], steps: int) -> GraphAround:
    """Return the neighbourhood, breadth first, along the strongest relations first."""
    near: dict[str, list[str]] = {}
    for edge in edges:
        near.setdefault(edge["source_id"], []).append(edge["target_id"])
        near.setdefault(edge["target_id"], []).append(edge["source_id"])
    reached: dict[str, tuple[int, str]] = {middle: (0, "")}
    ring = [middle]
    for distance in range(1, steps + 1):
        following: list[str] = []
        for name in ring:
            for other in near.get(name, ()):
                if other not in reached:
                    reached[other] = (distance, name)
                    following.append(other)
        ring = following
    ids = list(reached)[:MOST_NODES]
    rows = {r["memory_id"]: r for r in catalogue.read("memories", _COLUMNS, {"memory_id": ids})}
    nodes = [_node(rows[name], *reached[name]) for name in ids if name in rows]
    return GraphAround(middle, nodes, _edges_of(edges, set(rows)), len(reached) > len(ids))


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
