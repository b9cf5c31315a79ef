"""Tables of a data set that recall is measured on, written as the rows come."""

from collections.abc import Collection
from typing import TypeAlias

import pyarrow as pa

from cortex.flows.embedders import Embedder
from cortex.storage.tables.tables import GrowingTables
from cortex.transforms.errors import UsageError
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import PASSAGES
from cortex.transforms.search.corpus import CorpusRow, Positions
from cortex.transforms.search.index_text import embedded_text, index_text

# Rows embedded and written at a time: all that the size of a corpus asks of memory is its ids.
ROWS_AT_A_TIME = 2_000

# Scope, session, line: where a row stands.
RowPlace: TypeAlias = tuple[str, str, int]


class RetrievalCorpus:
    """
    The passages of a corpus, a table a project; `wanted` are the ids whose places are kept.

    `scopes` are those that have rows, `ids` the wanted ids that came, `id_at` their places.
    """

    def __init__(
        self, tables: GrowingTables, policy: Policy, embedder: Embedder | None, wanted: Collection[str]
    ) -> None:
        self._tables, self._policy, self._embedder = tables, policy, embedder
        self._wanted = wanted
        self._positions = Positions()
        self._waiting: list[CorpusRow] = []
        self._hashes: set[int] = set()
        self.id_at: dict[RowPlace, str] = {}
        self.ids: set[str] = set()
        self.scopes: dict[str, None] = {}
        self.rows = self.passages = 0

    def add(self, row: CorpusRow) -> None:
        """Take in a row; it is written with those that follow it. Raises UsageError for an id seen before."""
        key = hash(row.id)
        if key in self._hashes:
            raise UsageError(f"the corpus has the id '{row.id}' twice.", "Give each row an id of its own.")
        self._hashes.add(key)
        self._waiting.append(row)
        self.rows += 1
        if len(self._waiting) >= ROWS_AT_A_TIME:
            self._write()

    def finish(self) -> None:
        """Write what is left, and the indexes."""
        self._write()
        for scope in self.scopes:
            self._tables.finish(scope, PASSAGES.name)

    def _write(self) -> None:
        by_scope: dict[str, list[CorpusRow]] = {}
        for row in self._waiting:
            by_scope.setdefault(row.scope, []).append(row)
        self._waiting = []
        for scope, rows in by_scope.items():
            passages = self._positions.passages(rows, self._policy)
            self._note_places(scope, passages)
            self.scopes[scope] = None
            self.passages += passages.num_rows
            self._tables.append(scope, PASSAGES.name, _searchable(passages, self._embedder))

    def _note_places(self, scope: str, passages: pa.Table) -> None:
        columns = (passages[name].to_pylist() for name in ("turn_id", "session_id", "line"))
        for name, session, line in zip(*columns, strict=True):
            if name in self._wanted:
                self.ids.add(name)
                self.id_at[scope, session, line] = name


def _searchable(passages: pa.Table, embedder: Embedder | None) -> pa.Table:
    """Return passages with their index text and, with a model, the vectors of their prose."""
    rows = passages.to_pylist()
    passages = passages.append_column("index_text", pa.array([index_text(row) for row in rows], pa.string()))
    if embedder is None:
        return passages
    texts = [embedded_text(row) for row in rows]
    prose = [text for text in texts if text]
    vectors = iter(embedder.embed(prose) if prose else ())
    column = [next(vectors) if text else None for text in texts]
    return passages.append_column("vector", pa.array(column, pa.list_(pa.float32(), embedder.dimensions)))
