"""What a memory replaced or is at odds with, by the edges between memories (spec 10.3, 12)."""

from collections.abc import Collection
from dataclasses import dataclass

from cortex.storage.tables.tables import Dataset


@dataclass(frozen=True)
class Replaced:
    """A memory that another one took the place of: its id and its words."""

    memory_id: str
    text: str


def replaced_by(edges: Dataset, memories: Dataset, ids: Collection[str]) -> dict[str, tuple[Replaced, ...]]:
    """Return, by id, what each memory took the place of, ordered by id; nothing for those that took none."""
    where = {"edge_type": ["supersedes"], "source_id": ids}
    pairs = edges.read(["source_id", "target_id"], where).to_pylist()
    if not pairs:
        return {}
    where = {"status": ["superseded"], "memory_id": {pair["target_id"] for pair in pairs}}
    rows = memories.read(["memory_id", "text"], where).to_pylist()
    texts = {row["memory_id"]: row["text"] for row in rows}
    replaced: dict[str, tuple[Replaced, ...]] = {}
    for pair in sorted(pairs, key=lambda pair: pair["target_id"]):
        if pair["target_id"] in texts:
            known = replaced.get(pair["source_id"], ())
            target = pair["target_id"]
            replaced[pair["source_id"]] = (*known, Replaced(target, texts[target]))
    return replaced


# Edges of which the newer end took the older one's place, or says more of the same.
_SUBJECT_EDGES = ("contradicts", "refines", "supersedes")


def pairs_of_subject(edges: Dataset, ids: Collection[str]) -> set[frozenset[str]]:
    """Return the pairs among `ids` that edges name as one subject: at odds, refined or replaced."""
    where = {"edge_type": _SUBJECT_EDGES, "source_id": ids}
    pairs = edges.read(["source_id", "target_id"], where).to_pylist()
    return {frozenset((pair["source_id"], pair["target_id"])) for pair in pairs}
