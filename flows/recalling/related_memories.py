"""The memories near those that were found, by the edges between memories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cortex.flows.recalling.recall_search import RecallResult
from cortex.hooks.evidence.search import HIDDEN_STATUSES
from cortex.storage.tables.tables import Searchable
from cortex.transforms.memory.link import neighbourhood
from cortex.transforms.schemas import MEMORY_TYPES, values

_COLUMNS = ["memory_id", "memory_type", "text", "status", "merged_into", "trust", "rank"]
MOST_RELATED = 10
# A description stands for its code.
NOT_CODE = {"memory_type": [name for name in MEMORY_TYPES if name != "code"]}


@dataclass(frozen=True)
class Related:
    """A memory some steps away from a match."""

    memory_id: str
    memory_type: str
    text: str
    distance: int


def related_to(matches: Sequence[RecallResult], tables: Searchable, *, depth: int) -> list[Related]:
    """Return at most MOST_RELATED memories within `depth` edges of the matches, nearest first."""
    rows: list[tuple[int, float, Related]] = []
    for scope in sorted({result.project_id for result in matches if result.kind == "memory"}):
        ids = [result.id for result in matches if result.project_id == scope and result.kind == "memory"]
        edges = tables.open_index([scope], "edges").read(["source_id", "target_id"])
        reached = neighbourhood(edges, ids, depth=depth)
        distances = dict(zip(values(reached, "memory_id"), values(reached, "distance"), strict=True))
        for row in shown_memories(tables, scope, sorted(distances.keys() - set(ids))):
            distance = distances[row["memory_id"]]
            related = Related(row["memory_id"], row["memory_type"], row["text"], distance)
            rows.append((distance, -row["rank"], related))
    rows.sort(key=lambda row: (*row[:2], row[2].memory_id))
    return [related for _, _, related in rows[:MOST_RELATED]]


def shown_memories(tables: Searchable, scope: str, ids: list[str]) -> list[dict[str, Any]]:
    """Return the memories of these ids that recall may show."""
    if not ids:
        return []
    memories = tables.open_index([scope], "memories").read(_COLUMNS, NOT_CODE)
    mine = memories.filter(pa.compute.is_in(memories["memory_id"], pa.array(ids, pa.string())))
    return [
        row
        for row in mine.to_pylist()
        if row["status"] not in HIDDEN_STATUSES and row["merged_into"] is None and row["trust"] != "external"
    ]
