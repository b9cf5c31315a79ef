"""
The tables of a scope, as everything else sees them: what is searched, and how it is asked for.

The store of rows behind them is `lance_tables.py` with its `lance_library.py`, what they are searched by
`search_index.py`; only `store.py` names the first, and `projections.py` knows its folders.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cortex.transforms.schemas import EDGES, MEMORIES, PASSAGES

SEARCHED = {table.name: table for table in (MEMORIES, PASSAGES)}
PROJECTED = {**SEARCHED, EDGES.name: EDGES}

# What a searched table has besides its schema's columns; `vector` comes with the first model that answers.
INDEX_TEXT, VECTOR = "index_text", "vector"
# A scope's memories are kept as they were before they aged, too: the next day ages the same again.
UNAGED = {name: f"unaged_{name}" for name in ("confidence", "status", "archived_at", "centrality", "rank")}
# Whether a row of the table has one: all that the row's hash covers of it.
HAS_VECTOR = "has_vector"
# The model that gave it: vectors of another model are no change of the rows otherwise.
VECTOR_MODEL = "vector_model"

# The values that each column named may have, all to be met; None stands for a missing value.
Filter = Mapping[str, Collection[str | None]]

Vector = NDArray[np.float32]


def with_vectors(rows: pa.Table, vectors: pa.Table) -> pa.Table:
    """
    Return `rows` with `vector` and `vector_model` by their `content_hash`, null if there is none.

    `vectors` are VECTORS of one model; if there are none at all the rows are returned as they are.
    """
    import pyarrow.compute as pc  # here: questions do without it

    if not vectors.num_rows:
        return rows
    known = vectors["content_hash"].combine_chunks()
    taken = pc.index_in(rows["content_hash"].combine_chunks(), value_set=known)
    kind = pa.list_(pa.float32(), len(vectors["vector"][0]))
    rows = rows.append_column(VECTOR, vectors["vector"].combine_chunks().cast(kind).take(taken))
    return rows.append_column(VECTOR_MODEL, vectors["model"].combine_chunks().take(taken))


class Dataset(Protocol):
    """One table of one scope; without rows if there is none."""

    def count(self, where: Filter | None = None) -> int:
        """Return the number of rows that meet `where`."""

    def read(self, columns: Sequence[str] = (), where: Filter | None = None) -> pa.Table:
        """Return the rows that meet `where`, by key: those of `columns` that there are, or the schema's."""


class SearchableRows(Dataset, Protocol):
    """The rows of one table of some scopes, as the search index has them; searched as one."""

    def search_words(self, query: str, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        """Return the `limit` best rows by BM25 with their `score`, best first; none for an empty query."""

    def search_vector(self, vector: Vector, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        """Return the `limit` nearest rows with their cosine `similarity`, nearest first."""

    def similarities(self, vector: Vector, keys: Sequence[str], nearest: int) -> dict[str, float]:
        """Return the cosines of the rows with these keys that have one, and of the `nearest` rows of all."""


class Searchable(Protocol):
    """Where the rows of some scopes are searched: all that recall needs of a store."""

    def reading_index(self, scopes: Sequence[str]) -> AbstractContextManager[sqlite3.Connection | None]:
        """Yield the search index to read by; None if there is none. Raises TablesDamaged."""

    def open_index(self, scopes: Sequence[str], name: str) -> SearchableRows:
        """Return what the search index has of the table `name` of some scopes. Raises TablesDamaged."""


class Tables(Searchable, Protocol):
    """The tables of each scope, and the index that they are searched by."""

    def open(self, scope: str, name: str) -> Dataset:
        """Return the table `name` of `scope` for reading. Raises TablesDamaged."""


class GrowingTables(Tables, Protocol):
    """Tables of a data set, filled bit by bit."""

    def append(self, scope: str, name: str, rows: pa.Table) -> None:
        """Add rows that are not in the table yet; `finish` makes it searchable."""

    def finish(self, scope: str, name: str) -> None:
        """Index and compact what was appended."""

    def size(self) -> int:
        """Return what all tables take on disk, in bytes."""


class StoredTables(Tables, Protocol):
    """The memories, edges and passages of every scope, as the stages write them."""

    def scopes(self) -> list[str]:
        """Return the scopes that have tables, sorted."""

    def exists(self, scope: str, name: str) -> bool:
        """Return whether there is a table; one without rows may never have been written."""

    def replace(self, scope: str, name: str, rows: pa.Table) -> int:
        """
        Make `rows` the table's content and return how many rows were written or removed.

        `rows` has the schema's columns, for searched tables also `index_text` and (where there is a model)
        `vector`. A table that cannot be read is replaced as a whole.
        """

    def update(self, scope: str, name: str, rows: pa.Table, where: Filter) -> int | None:
        """
        Make `rows` all that meets `where`, also in the place of rows of their keys; leave the other rows.

        `rows` are as `replace` takes them. Returns how many rows were written or removed; None if the
        table has other columns, or cannot be read: it is to be replaced as a whole.
        """

    def content_of(self, scope: str, name: str) -> str | None:
        """
        Return a value of the rows that a table has, whenever and wherever they were written.

        None if they cannot be read, or where the search index holds other rows.
        """

    def settle_search(self, settings: str, ranks: Sequence[tuple[str, int]]) -> bool:
        """Make these what the prompt hook searches by: a `settings_document`, and words with their places."""

    def mark_search(self, scope: str, marks: Mapping[str, str]) -> bool:
        """Make `marks` what the prompt hook says behind memories that their repository disagrees with."""

    def purge(self, scope: str) -> None:
        """Leave no byte of rows that are gone from a scope's tables."""

    def drop(self, scope: str) -> None:
        """Remove a scope's tables."""
