"""The code that a description leads to by its `source_of` edge: its file and how it begins (spec 10.2)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

# Five to ten lines: enough to tell whether to open the file.
EXCERPT_CHARS = 240


@dataclass(frozen=True)
class Code:
    """Stored code: the id of its memory, its file, and how it begins."""

    memory_id: str
    file: str
    excerpt: str


class Readable(Protocol):
    """The reading that is needed of a table."""

    def read(self, columns: list[str], where: str) -> pa.Table:
        """Return the rows that meet an SQL condition."""


def code_behind(edges: Readable, memories: Readable, described: Iterable[str]) -> dict[str, Code]:
    """Return by id of a description the code it speaks of; none for code that was taken back."""
    condition = f"edge_type = 'source_of' and {is_in('source_id', described)}"
    found = edges.read(["source_id", "target_id"], condition).to_pylist()
    target_of = {edge["source_id"]: edge["target_id"] for edge in found}
    if not target_of:
        return {}
    told = f"status in ('active', 'archived') and {is_in('memory_id', target_of.values())}"
    rows = memories.read(["memory_id", "text", "files"], told).to_pylist()
    code = {
        row["memory_id"]: Code(row["memory_id"], ", ".join(row["files"]), beginning(row["text"]))
        for row in rows
    }
    return {source: code[target] for source, target in target_of.items() if target in code}


def beginning(code: str) -> str:
    """Return the whole lines that fit into EXCERPT_CHARS; of a first line that does not, what fits."""
    if len(code) <= EXCERPT_CHARS:
        return code
    end = code.rfind("\n", 0, EXCERPT_CHARS + 1)
    return code[: end if end > 0 else EXCERPT_CHARS].rstrip()


def is_in(column: str, ids: Iterable[str]) -> str:
    # Quotes doubled: an imported memory's id is whatever its file said.
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    return f"{column} in ({listed})"
