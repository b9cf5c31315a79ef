"""
The search index: the words, vectors and shown rows of the tables of every scope, in one file.

Made from the tables in the same step that writes them, and disposable as they are. A question is answered
from it alone, over one project or all of them, without the library of the tables.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cortex.hooks.evidence.index import COMMANDS, Part, best_rows, index_parts
from cortex.hooks.evidence.text import COMMAND_KIND, count_words
from cortex.storage.tables.search_file import (
    create_layout,
    is_sound,
    purge_index,
    read_index,
    remove_index,
    write_index,
)
from cortex.storage.tables.search_writing import PartWriter, block_arrays, indexed_hashes
from cortex.storage.tables.tables import PROJECTED, VECTOR, Filter, Vector
from cortex.transforms.errors import TablesDamaged
from cortex.transforms.schemas import PASSAGES, Row, Table

# -- Reads the search index: rows by key, by words, by vector, of one scope or of many at once.

# Rows beyond the wanted ones whose exact vectors are compared: bytes round some to another place.
_EXTRA_ROWS = 50
_VARIABLES = 500

ReadIndex = Callable[[], AbstractContextManager[sqlite3.Connection | None]]


class IndexedRows:
    """The rows of the table `name` of some scopes; without rows if there are none."""

    def __init__(self, reading: ReadIndex, scopes: Sequence[str], name: str) -> None:
        self._reading, self._scopes, self._table = reading, sorted(set(scopes)), PROJECTED[name]

    def count(self, where: Filter | None = None) -> int:
        """Return the number of rows that meet `where`."""
        if where:
            return int(self.read([self._table.key[0]], where).num_rows)
        with self._reading() as connection:
            return sum(part.rows for part in self._parts(connection))

    def read(self, columns: Sequence[str] = (), where: Filter | None = None) -> pa.Table:
        """Return the rows that meet `where`, by key: those of `columns` that there are, or the schema's."""
        key, wanted = self._table.key[0], list(columns or self._table.arrow.names)
        with self._reading() as connection:
            parts = self._parts(connection)
            keys = sorted(name for name in where[key] if name) if where and key in where else None
            decoded = _decoded(_bodies_of(connection, parts, keys), parts)
        rows = sorted((row for row in decoded if _meets(row, where or {})), key=lambda row: str(row[key]))
        return self._table_of(self._known(wanted), rows)

    def search_words(self, query: str, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        """
        Return the `limit` best rows by BM25 with their `score`, best first; none for an empty query.

        A word weighs by the rows of these scopes that hold it: what others hold changes nothing.
        """
        with self._reading() as connection:
            parts = self._parts(connection)
            best = best_rows(connection, parts, [word for word, _, _ in count_words([query])], limit)
            rows = np.array([row for row, _ in best], np.int64)
            scores = np.array([score for _, score in best])
            return self._ranked(connection, parts, rows, scores, "score", limit, columns)

    def similarities(self, vector: Vector, keys: Sequence[str], nearest: int) -> dict[str, float]:
        """Return the cosines of the rows with these keys, and of the `nearest` rows of all."""
        with self._reading() as connection:
            parts = [part for part in self._parts(connection) if part.dimensions == len(vector)]
            if connection is None or not parts:
                return {}
            rows, near = _compared(connection, parts, vector)
            chosen = set(rows[_best(near, nearest + _EXTRA_ROWS)].tolist())
            listed = [
                row
                for part in parts
                for row, _ in _by_values(
                    connection, f"select row, key from bodies where part = {part.part} and key in", keys
                )
            ]
            numbers = sorted(chosen | set(listed))
            halves = _by_number(connection, "select row, vector from vectors where row in", numbers)
            exact = {row: float(np.frombuffer(half, "<f2") @ vector) for row, half in halves.items()}
            key_of = _by_number(connection, "select row, key from bodies where row in", [*exact])
        order = sorted(chosen & exact.keys(), key=lambda row: (-exact[row], key_of[row]))
        return {str(key_of[row]): exact[row] for row in {*order[:nearest], *listed} if row in exact}

    def search_vector(self, vector: Vector, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        """Return the `limit` nearest rows with their cosine `similarity`, nearest first."""
        with self._reading() as connection:
            parts = [part for part in self._parts(connection) if part.dimensions == len(vector)]
            rows, near = _compared(connection, parts, vector)
            chosen = rows[_best(near, limit + _EXTRA_ROWS)]
            halves = _by_number(connection, "select row, vector from vectors where row in", chosen.tolist())
            exact = np.array(
                [np.frombuffer(halves[row], "<f2") @ vector for row in chosen.tolist()], np.float32
            )
            return self._ranked(connection, parts, chosen, exact, "similarity", limit, columns)

    def _known(self, columns: Sequence[str]) -> list[str]:
        return [name for name in dict.fromkeys(columns) if name in self._table.arrow.names]

    def _parts(self, connection: sqlite3.Connection | None) -> list[Part]:
        return index_parts(connection, self._scopes, self._table.name)

    def _ranked(
        self,
        connection: sqlite3.Connection | None,
        parts: list[Part],
        rows: Any,
        scores: Any,
        name: str,
        limit: int,
        columns: Sequence[str],
    ) -> pa.Table:
        """Return the first `limit` of these rows by score, then by key, with the columns asked for."""
        numbers = rows.tolist()
        select = "select row, key, part, body from bodies where row in"
        known = {row: rest for row, *rest in _by_values(connection, select, numbers)}
        order = sorted(zip(-scores, numbers, strict=True), key=lambda pair: (pair[0], known[pair[1]][0]))[
            :limit
        ]
        chosen = [row for _, row in order]
        asked = self._known(columns or self._table.arrow.names)
        table = self._table_of(asked, _decoded((tuple(known[row][1:]) for row in chosen), parts))
        dimensions = _most(parts)
        if dimensions and (not columns or VECTOR in columns):
            halves = _by_number(connection, "select row, vector from vectors where row in", chosen)
            table = table.append_column(VECTOR, _vectors(chosen, halves, dimensions))
        return table.append_column(name, pa.array([-float(score) for score, _ in order], pa.float32()))

    def _table_of(self, columns: Sequence[str], rows: Sequence[Row]) -> pa.Table:
        fields = [self._table.arrow.field(name) for name in columns]
        arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in fields]
        return pa.table(arrays, schema=pa.schema(fields))


def _most(parts: list[Part]) -> int:
    """Return how many numbers the vectors of most rows have; 0 if there are none."""
    rows_of: dict[int, int] = {}
    for part in parts:
        rows_of[part.dimensions] = rows_of.get(part.dimensions, 0) + part.rows
    return max(rows_of, key=lambda dimensions: (rows_of[dimensions], dimensions), default=0)


def _vectors(rows: list[int], halves: dict[int, bytes], dimensions: int) -> "pa.Array[Any]":
    known = [len(halves.get(row, b"")) == 2 * dimensions for row in rows]
    nothing = bytes(2 * dimensions)
    joined = b"".join(halves[row] if is_known else nothing for row, is_known in zip(rows, known, strict=True))
    # From buffers: as arrays Arrow takes them with modules that take a tenth of a second to import.
    numbers = pa.py_buffer(np.frombuffer(joined, "<f2").astype(np.float32).tobytes())
    values = pa.Array.from_buffers(pa.float32(), len(rows) * dimensions, [None, numbers])
    valid = None if all(known) else pa.py_buffer(np.packbits(known, bitorder="little").tobytes())
    kind = pa.list_(pa.float32(), dimensions)
    return pa.Array.from_buffers(kind, len(rows), [valid], children=[values])


def _decoded(bodies: Iterable[tuple[int, bytes]], parts: list[Part]) -> list[Row]:
    names_of = {part.part: part.columns for part in parts}
    return [dict(zip(names_of[part], json.loads(str(body, "utf-8")), strict=True)) for part, body in bodies]


def _meets(row: Row, where: Filter) -> bool:
    return all(row.get(name) in allowed for name, allowed in where.items())


def _compared(connection: sqlite3.Connection | None, parts: list[Part], vector: Vector) -> tuple[Any, Any]:
    """Return all rows that have a vector, and about how near each is."""
    rows, near = [np.zeros(0, np.uint32)], [np.zeros(0, np.float32)]
    select = "select rows, scales, codes from blocks where part = ? order by block"
    for part in parts if connection is not None else ():
        assert connection is not None
        for blobs in connection.execute(select, (part.part,)):
            numbers, scales, codes = block_arrays(blobs, len(vector))
            rows.append(numbers)
            near.append((codes.astype(np.float32) @ vector) * scales)
    return np.concatenate(rows), np.concatenate(near)


def _best(scores: Any, most: int) -> Any:
    """Return the places of the highest scores, best first, at most `most`."""
    if len(scores) > most:
        chosen = np.argpartition(-scores, most)[:most]
        return chosen[np.argsort(-scores[chosen], kind="stable")]
    return np.argsort(-scores, kind="stable")


def _bodies_of(
    connection: sqlite3.Connection | None, parts: list[Part], keys: list[str] | None
) -> Iterator[tuple[int, bytes]]:
    if connection is None:
        return
    select = "select part, body from bodies where part = ?"
    for part in parts:
        if keys is None:
            yield from connection.execute(select, (part.part,))
            continue
        for start in range(0, len(keys), _VARIABLES):
            some = keys[start : start + _VARIABLES]
            listed = f"{select} and key in ({','.join('?' * len(some))})"
            yield from connection.execute(listed, (part.part, *some))


def _by_number(connection: sqlite3.Connection | None, select: str, numbers: Sequence[int]) -> dict[int, Any]:
    return dict(_by_values(connection, select, numbers))


def _by_values(
    connection: sqlite3.Connection | None, select: str, values: Sequence[int] | Sequence[str]
) -> Iterator[Any]:
    for start in range(0, len(values) if connection is not None else 0, _VARIABLES):
        assert connection is not None
        some = values[start : start + _VARIABLES]
        yield from connection.execute(f"{select} ({','.join('?' * len(some))})", some)


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

    def hashes(self, scope: str, name: str) -> "np.ndarray[Any, Any]":
        """Return the hashes of the rows that the index holds of a table, sorted. Raises TablesDamaged."""
        with self.reading([scope]) as connection:
            parts = _named(name) if connection is not None else ()
            hashes = [indexed_hashes(connection, scope, part.name) for part in parts if connection]
            return np.sort(np.concatenate([np.empty(0, np.uint64), *hashes]))

    def append(self, scope: str, name: str, rows: pa.Table, hashes: Sequence[int]) -> None:
        """Add rows that the index does not hold."""
        with self._writing() as connection:
            for part, its_rows, its_hashes in _parts(name, rows, hashes):
                PartWriter(connection, scope, part).append(its_rows, its_hashes)

    def set_reader_settings(self, settings: str, ranks: Sequence[tuple[str, int]]) -> bool:
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
