"""Walks the links of a memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortex.flows.context.context import Context
from cortex.flows.operations.lookup.targets import memory_of
from cortex.flows.recalling.related_memories import shown_memories
from cortex.transforms.schemas import Row
from cortex.transforms.views.breadth import Linked, linked_to


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
    memories = {own_id: memory, **{row["memory_id"]: row for row in rows}}
    shown = [each for each in linked if each.memory_id in memories and each.via_id in memories]
    return Neighbourhood(memory, shown[:limit], memories, max(0, len(shown) - limit))
