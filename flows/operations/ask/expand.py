"""One memory or turn, named by its id, with all that is kept of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.flows.operations.lookup.ids import several, typed_id
from cortex.flows.operations.lookup.targets import (
    SURELY_AN_ID_CHARS,
    is_memory_id,
    memory_by_id,
    scopes_of,
)
from cortex.transforms.errors import NotFound
from cortex.transforms.schemas import Row

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
        return Expanded(MEMORY, [row], store.projects.name_of(row["project_id"]))
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
    return Expanded(TURN, rows, store.projects.name_of(rows[0]["project_id"]))


def _begin_with(word: str, passages: pa.Table) -> list[Row]:
    rows: list[Row] = passages.filter(pc.starts_with(passages["passage_id"], word)).to_pylist()
    return rows
