"""
The search index: the words, vectors and shown rows of the tables of every scope, in one file.

Made from the tables in the same step that writes them, and disposable as they are. A question is answered
from it alone, over one project or all of them, without the library of the tables.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from cortex.hooks.evidence.index import COMMANDS
from cortex.hooks.evidence.text import COMMAND_KIND
from cortex.storage.tables.search_file import (
    create_layout,
    is_sound,
    purge_index,
    read_index,
    remove_index,
    write_index,
)
from cortex.storage.tables.search_rows import IndexedRows
from cortex.storage.tables.search_writing import PartWriter, indexed_hashes
from cortex.storage.tables.tables import PROJECTED
from cortex.transforms.errors import TablesDamaged
from cortex.transforms.schemas import PASSAGES, Table


class SearchIndex:
    """The index at `path`; one of this process alone if there is none."""

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
            for part, its_rows, its_hashes in _parts(name, rows, hashes):
                writer = PartWriter(connection, scope, part)
                if not keeps:
                    writer.remove()
                writer.replace(its_rows, its_hashes)

    def update(
        self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int], gone: Sequence[str], count: int
    ) -> bool:
        """
        Put `rows` in the place of those with their keys and take out the keys `gone`.

        Returns whether the index holds `count` rows of the table then; else it is to be written as a whole.
        """
        with self._writing() as connection:
            counts = [
                PartWriter(connection, scope, part).update(its_rows, its_hashes, gone)
                for part, its_rows, its_hashes in _parts(name, rows, hashes)
            ]
            return None not in counts and sum(filter(None, counts)) == count

    def hashes(self, scope: str, name: str) -> list[int]:
        """Return the hashes of the rows that the index holds of a table, sorted. Raises TablesDamaged."""
        with self.reading([scope]) as connection:
            if connection is None:
                return []
            return sorted(
                mark for part in _named(name) for mark in indexed_hashes(connection, scope, part.name)
            )

    def append(self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int]) -> None:
        """Add rows that the index does not hold."""
        with self._writing() as connection:
            for part, its_rows, its_hashes in _parts(name, rows, hashes):
                PartWriter(connection, scope, part).append(its_rows, its_hashes)

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
        """Remove what the index holds of a scope; if the file is damaged, all of it."""
        if self._path is not None and not self._path.is_file():
            return
        if self._path is not None and not is_sound(self._path):
            remove_index(self._path)
            return
        with self._writing() as connection:
            for part in (part for name in PROJECTED for part in _named(name)):
                PartWriter(connection, scope, part).remove()
            connection.execute("delete from marks where scope = ?", (scope,))

    def remove(self, scope: str, name: str) -> None:
        """Remove what the index holds of one table."""
        with self._writing() as connection:
            for part in _named(name):
                PartWriter(connection, scope, part).remove()

    def purge(self) -> None:
        """Leave no byte of rows that are gone."""
        if self._path is not None:
            purge_index(self._path)

    @contextmanager
    def reading(self, scopes: Sequence[str]) -> Iterator[sqlite3.Connection | None]:
        """Yield a connection to read by; None if no index is. Raises TablesDamaged, of one of `scopes`."""
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


def _named(name: str) -> tuple[Table, ...]:
    """Return what an index holds of a table, each part with word counts of its own."""
    # Commands are short and full of the same words: counted with the prose they cost two of 39 questions the
    # first place over all projects.
    return (PASSAGES, replace(PASSAGES, name=COMMANDS)) if name == PASSAGES.name else (PROJECTED[name],)


def _parts(
    name: str, rows: pa.Table, hashes: Sequence[int]
) -> Iterator[tuple[Table, pa.Table, Sequence[int]]]:
    """Yield each part of a table with its rows and their hashes."""
    parts = _named(name)
    if len(parts) == 1:
        yield parts[0], rows, hashes
        return
    is_command = [kind == COMMAND_KIND for kind in rows["kind"].to_pylist()]
    for part, wanted in zip(parts, (False, True), strict=True):
        places = [at for at, is_one in enumerate(is_command) if is_one == wanted]
        yield part, rows.take(pa.array(places, pa.int64())), [hashes[at] for at in places]
