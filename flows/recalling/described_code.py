"""The code that a description leads to by its `source_of` edge: its file and how it begins (spec 10.2)."""

from collections.abc import Collection
from dataclasses import dataclass

from cortex.storage.tables.tables import Dataset

# Five to ten lines: enough to tell whether to open the file.
EXCERPT_CHARS = 240


@dataclass(frozen=True)
class Code:
    """Stored code: the id of its memory, its file, and how it begins."""

    memory_id: str
    file: str
    excerpt: str


def code_behind(edges: Dataset, memories: Dataset, described: Collection[str]) -> dict[str, Code]:
    """Return by id of a description the code it speaks of; none for code that was taken back."""
    where = {"edge_type": ["source_of"], "source_id": described}
    pairs = edges.read(["source_id", "target_id"], where).to_pylist()
    target_of = {edge["source_id"]: edge["target_id"] for edge in pairs}
    if not target_of:
        return {}
    where = {"status": ["active", "archived"], "memory_id": [*target_of.values()]}
    code = {
        row["memory_id"]: Code(row["memory_id"], ", ".join(row["files"]), beginning(row["text"]))
        for row in memories.read(["memory_id", "text", "files"], where).to_pylist()
    }
    return {source: code[target] for source, target in target_of.items() if target in code}


def beginning(code: str) -> str:
    """Return the whole lines that fit into EXCERPT_CHARS; of a first line that does not, what fits."""
    if len(code) <= EXCERPT_CHARS:
        return code
    end = code.rfind("\n", 0, EXCERPT_CHARS + 1)
    return code[: end if end > 0 else EXCERPT_CHARS].rstrip()
