"""
The search index: the words, vectors and shown rows of the tables of every scope, in one file.

Made from the tables in the same step that writes them, and disposable as they are. A question is answered
from it alone, over one project or all of them, without the library of the tables.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
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
        return IndexedRows(lambda: self.reading(scopes), scopes, name)

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
        with self.reading([scope]) as connection:
            return indexed_hashes(connection, scope, name) if connection is not None else []

    def append(self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int]) -> None:
        """Add rows that the index does not hold."""
        with self._writing() as connection:
            PartWriter(connection, scope, PROJECTED[name]).append(rows, hashes)

    def settle(self, settings: str, ranks: Sequence[tuple[str, int]]) -> bool:
        """
        Make these what a reader without a policy goes by; return whether they were not already.

        `settings` is a `settings_document`, `ranks` are the most frequent words, each with its place.
        """
        is_new = self._hold("settings", "name, value", "name = ?", "search", [(settings,)])
        return self._hold("word_ranks", "word, rank", "rank > ?", 0, sorted(ranks)) or is_new

    def mark(self, scope: str, marks: Mapping[str, str]) -> bool:
        """Make `marks` what stands behind memories that the repository disagrees with, by their id."""
        return self._hold("marks", "scope, memory_id, mark", "scope = ?", scope, sorted(marks.items()))

    def _hold(
        self, table: str, columns: str, where: str, value: str | int, rows: Sequence[tuple[str | int, ...]]
    ) -> bool:
        """Make `rows` what a table has where a condition holds; return whether it had not."""
        given = [(value, *row) for row in rows] if isinstance(value, str) else rows
        select = f"select {columns} from {table} where {where} order by {columns}"
        with self.reading(()) as connection:
            if connection is not None and connection.execute(select, (value,)).fetchall() == given:
                return False
        with self._writing() as connection:
            connection.execute(f"delete from {table} where {where}", (value,))
            places = ", ".join("?" * len(columns.split(",")))
            connection.executemany(f"insert into {table} ({columns}) values ({places})", given)
        return True

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
            connection.execute("delete from marks where scope = ?", (scope,))

    def remove(self, scope: str, name: str) -> None:
        """Remove what the index holds of one table."""
        with self._writing() as connection:
            PartWriter(connection, scope, PROJECTED[name]).remove()

    def purge(self) -> None:
        """Leave no byte of rows that are gone."""
        if self._path is not None:
            purge_index(self._path)

    @contextmanager
    def reading(self, scopes: Sequence[str]) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection to read by; None where no index is. Raises TablesDamaged, of one of `scopes`."""
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
