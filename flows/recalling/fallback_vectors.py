"""Search by another model's vectors than those of the tables, where the hosted model does not answer."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cortex.flows.context.context import Context
from cortex.flows.embedders import Embedder, local_or_none
from cortex.flows.embedders.similarity import exact
from cortex.hooks.evidence.search import KEY_COLUMNS
from cortex.storage.model_calls.model_failure import ModelFailure, note_failure
from cortex.storage.store import Store
from cortex.storage.tables.tables import (
    VECTOR,
    Filter,
    Searchable,
    SearchableRows,
    Vector,
)
from cortex.transforms.errors import ModelUnavailable, StoreNotWritable
from cortex.transforms.schemas import VECTORS

if TYPE_CHECKING:
    from cortex.flows.embedders import Vectors

HASH = "content_hash"


class SpareVectors:
    """
    Tables whose rows have the vectors of `model` in the place of their own.

    `read_vectors` gives the VECTORS of that model; they are read once, and only if a table has others.
    """

    def __init__(self, tables: Searchable, read_vectors: Callable[[], pa.Table], dimensions: int) -> None:
        self._tables = tables
        self._read_vectors = read_vectors
        self._dimensions = dimensions
        self._vectors: pa.Table | None = None

    def reading_index(self, scopes: Sequence[str]) -> AbstractContextManager[sqlite3.Connection | None]:
        """Yield the search index to read by; of its vectors nothing is read there."""
        return self._tables.reading_index(scopes)

    def open_index(self, scopes: Sequence[str], name: str) -> SearchableRows:
        """Return rows that are searched by the spare vectors; those that have such vectors as they are."""
        rows = self._tables.open_index(scopes, name)
        if name not in KEY_COLUMNS or not rows.count():
            return rows
        columns = [KEY_COLUMNS[name], VECTOR]
        kind = rows.search_words("a", 1, columns).schema
        is_same = VECTOR in kind.names and kind.field(VECTOR).type == self._kind()
        return rows if is_same else _Searched(rows, KEY_COLUMNS[name], self)

    def of(self, hashes: Sequence[str | None]) -> "pa.ChunkedArray[Any]":
        """Return the vectors of texts by their content hash, null if there is none."""
        if self._vectors is None:
            self._vectors = self._read_vectors().combine_chunks()
        position = {name: at for at, name in enumerate(self._vectors[HASH].to_pylist())}
        taken = pa.array([position.get(name or "") for name in hashes], pa.int64())
        return self._vectors[VECTOR].cast(self._kind()).take(taken)

    def _kind(self) -> pa.DataType:
        return pa.list_(pa.float32(), self._dimensions)


class _Searched:
    """Rows of one table, given the spare vectors; by these it is searched row by row, without an index."""

    def __init__(self, rows: SearchableRows, key: str, spare: SpareVectors) -> None:
        self._rows = rows
        self._key = key
        self._spare = spare

    def count(self, where: Filter | None = None) -> int:
        return self._rows.count(where)

    def read(self, columns: Sequence[str] = (), where: Filter | None = None) -> pa.Table:
        return self._rows.read(columns, where)

    def search_words(self, query: str, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        wanted = [name for name in columns if name != VECTOR]
        return self._with_vectors(self._rows.search_words(query, limit, [*wanted, HASH]))

    def search_vector(self, vector: Vector, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        ids = self._with_vectors(self._rows.read([self._key, HASH]))
        similarity = np.nan_to_num(exact(ids, vector), nan=-1.0)
        nearest = np.argsort(-similarity, kind="stable")[:limit]
        named = ids.take(nearest[similarity[nearest] > -1.0])[self._key].to_pylist()
        wanted = [name for name in columns if name != VECTOR]
        rows = self._with_vectors(self._rows.read([*wanted, HASH], {self._key: named}))
        return rows.append_column("similarity", pa.array(exact(rows, vector), pa.float32()))

    def similarities(self, vector: Vector, keys: Sequence[str], nearest: int) -> dict[str, float]:
        rows = self._with_vectors(self._rows.read([self._key, HASH]))
        names = [str(name) for name in rows[self._key].to_pylist()]
        near = {name: value for name, value in zip(names, exact(rows, vector), strict=True) if value == value}
        best = sorted(near, key=lambda name: (-near[name], name))[:nearest]
        return {name: float(near[name]) for name in {*best, *keys} & near.keys()}

    def _with_vectors(self, rows: pa.Table) -> pa.Table:
        vectors = self._spare.of(rows[HASH].to_pylist())
        return rows.drop_columns([HASH]).append_column(VECTOR, vectors)


class Answered:
    """A model that has embedded one question; it is not asked for it again."""

    def __init__(self, embedder: Embedder, question: str) -> None:
        """Ask `embedder` for the question's vector. Raises ModelUnavailable."""
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._vectors = embedder.embed([question], as_query=True)

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> "Vectors":
        """Return the question's vector."""
        return self._vectors


def model_for(
    question: str, context: Context, store: Store, tables: Searchable
) -> tuple[Embedder | None, Searchable]:
    """
    Return the model that embeds a question, and the tables with vectors to compare its answer with.

    Where the model in force is hosted and does not answer, that is noted, so that the next question does not
    wait for it, and the local model and its vectors take its place.
    """
    embedder = context.embedder()
    if embedder is None or not context.settings.voyage_api_key or not question.strip():
        return embedder, tables
    spare = local_or_none()
    if spare is None:
        return embedder, tables
    # Between a new key and the first run with it there is nothing to compare the hosted vector with.
    if embedder.model != spare.model and embedder.model in store.lake.manifest.partitions("vectors"):
        try:
            return Answered(embedder, question), tables
        except ModelUnavailable as error:
            with suppress(StoreNotWritable):
                note_failure(store.home, ModelFailure(embedder.model, context.now, error.problem))
    return spare, SpareVectors(tables, lambda: store.lake.read(VECTORS, spare.model), spare.dimensions)
