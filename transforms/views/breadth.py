"""The neighbourhood of a memory in breadth: what is linked to it, and what is linked to that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


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
