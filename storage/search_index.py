"""
The search index: the words, vectors and shown rows of the tables of every scope, in one file.

Made from the tables in the same step that writes them, and disposable as they are. A question is answered
from it alone, over one project or all of them, without the library of the tables.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from cortex.storage.search_file import (
    create_layout,
    is_sound,
    purge_index,
    read_index,
    remove_index,
    write_index,
)
from cortex.storage.search_rows import IndexedRows
from cortex.storage.search_writing import PartWriter, indexed_hashes
from cortex.storage.tables import PROJECTED
from cortex.transforms.errors import TablesDamaged


class SearchIndex:
    """The index at `path`; one of this process alone where there is none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._memory: sqlite3.Connection | None = None

    def rows(self, scopes: Sequence[str], name: str) -> IndexedRows:
        """Return the rows of the table `name` of some scopes, to be searched as one."""
        return IndexedRows(lambda: self._reading(scopes), scopes, name)

    def replace(
        self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int], *, keeps: bool = True
    ) -> None:
        """
        Make `rows` what the index holds of a table; of rows whose hash it has nothing is written.

        Without `keeps` all that it holds of the table is written again.
        """
        with self._writing() as connection:
            writer = PartWriter(connection, scope, PROJECTED[name])
            if not keeps:
                writer.remove()
            writer.replace(rows, hashes)

    def update(
        self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int], gone: Sequence[str], count: int
    ) -> bool:
        """
        Put `rows` in the place of those with their keys and take out the keys `gone`.

        Returns whether the index holds `count` rows of the table then; else it is to be written as a whole.
        """
        with self._writing() as connection:
            return PartWriter(connection, scope, PROJECTED[name]).update(rows, hashes, gone, count)

    def hashes(self, scope: str, name: str) -> list[int]:
        """Return the hashes of the rows that the index holds of a table, sorted. Raises TablesDamaged."""
        with self._reading([scope]) as connection:
            return indexed_hashes(connection, scope, name) if connection is not None else []

    def append(self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int]) -> None:
        """Add rows that the index does not hold."""
        with self._writing() as connection:
            PartWriter(connection, scope, PROJECTED[name]).append(rows, hashes)

    def drop(self, scope: str) -> None:
        """Remove what the index holds of a scope; where the file is damaged, all of it."""
        if self._path is not None and not self._path.is_file():
            return
        if self._path is not None and not is_sound(self._path):
            remove_index(self._path)
            return
        with self._writing() as connection:
            for table in PROJECTED.values():
                PartWriter(connection, scope, table).remove()

    def remove(self, scope: str, name: str) -> None:
        """Remove what the index holds of one table."""
        with self._writing() as connection:
            PartWriter(connection, scope, PROJECTED[name]).remove()

    def purge(self) -> None:
        """Leave no byte of rows that are gone."""
        if self._path is not None:
            purge_index(self._path)

    @contextmanager
    def _reading(self, scopes: Sequence[str]) -> Iterator[sqlite3.Connection | None]:
        if self._path is None:
            yield self._memory
            return
        try:
            with read_index(self._path) as connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise TablesDamaged("The search index cannot be read.", next(iter(scopes), None)) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if self._path is not None:
            with write_index(self._path) as connection:
                yield connection
            return
        if self._memory is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            create_layout(self._memory)
        yield self._memory
