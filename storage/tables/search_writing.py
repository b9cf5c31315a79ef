"""Writes the search index: the rows of a part that changed, their words, their vectors."""

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cortex.hooks.evidence.index import SECTION_ROWS, STATE_TYPES, section_label
from cortex.hooks.evidence.text import COMMAND_KIND, count_words
from cortex.storage.tables.tables import INDEX_TEXT, VECTOR
from cortex.transforms.schemas import EPOCH, Table, values

# Of a word in a row: the row, how often it stands there, how many words the row has.
ENTRY = np.dtype([("row", "<u4"), ("count", "<u2"), ("length", "<u2")])
_MOST = 0xFFFF
# Rows whose words are counted together: more take more memory, fewer write common words more often.
_ROWS_AT_ONCE = 20_000
# Rows of one block of vectors: 390 kB with 384 numbers each.
BLOCK_ROWS = 1_024
_VARIABLES = 500


class PartWriter:
    """One part of an index that is open for writing; `table` is what it holds."""

    def __init__(self, connection: sqlite3.Connection, scope: str, table: Table) -> None:
        self._connection, self._scope, self._table = connection, scope, table
        known = connection.execute(
            "select part, columns, dimensions from parts where scope = ? and name = ?", (scope, table.name)
        ).fetchone()
        self._part: int | None
        self._columns: str
        self._dimensions: int
        self._part, self._columns, self._dimensions = known or (None, "", 0)

    def replace(self, rows: pa.Table, hashes: Sequence[int]) -> None:
        """Make `rows` the part's content; of rows whose hash is known nothing is written."""
        self._prepare(rows)
        before: dict[str, tuple[int, int]] = {}
        gone: list[int] = []
        keys = rows[self._table.key[0]].to_pylist()
        there = set(keys)
        select = "select row, key, hash from bodies where part = ? order by row"
        for row, key, known in self._connection.execute(select, (self._part,)):
            if key in there and key not in before:
                before[key] = row, known
            else:
                gone.append(row)
        self._write(rows, hashes, before, gone)

    def update(self, rows: pa.Table, hashes: Sequence[int], gone: Sequence[str]) -> int | None:
        """
        Put `rows` in the place of those with their keys, take out the keys `gone`, leave the others.

        Returns how many rows the part holds then; None if it is to be written as a whole.
        """
        vector = rows.schema.field(VECTOR).type.list_size if VECTOR in rows.schema.names else 0
        if self._part is None or (self._columns, self._dimensions) != (
            ",".join(self._names_in(rows)),
            vector,
        ):
            return None
        keys = values(rows, self._table.key[0])
        select = f"select key, row, hash from bodies where part = {self._part} and key in"
        known = {key: (row, mark) for key, row, mark in self._values(select, [*keys, *gone])}
        gone_rows = [known.pop(key)[0] for key in gone if key in known]
        self._write(rows, hashes, known, gone_rows)
        select = "select rows from parts where part = ?"
        return int(self._connection.execute(select, (self._part,)).fetchone()[0])

    def _write(
        self, rows: pa.Table, hashes: Sequence[int], before: dict[str, tuple[int, int]], gone: list[int]
    ) -> None:
        """Write what is new or has changed; `before` has row and hash of what is known, by key."""
        keys = rows[self._table.key[0]].to_pylist()
        # Of rows of the same key the first counts.
        first = sorted({key: at for at, key in reversed([*enumerate(keys)])}.values())
        new = [at for at in first if keys[at] not in before]
        changed = [at for at in first if keys[at] in before and before[keys[at]][1] != _signed(hashes[at])]
        again = self._update(rows, hashes, changed, [before[keys[at]][0] for at in changed])
        if gone:
            self._remove(gone)
        self._add(rows, hashes, sorted([*new, *again]))

    def append(self, rows: pa.Table, hashes: Sequence[int]) -> None:
        """Add rows that are not in the part."""
        self._prepare(rows)
        self._add(rows, hashes, range(rows.num_rows))

    def remove(self) -> None:
        """Remove the part with all that it holds."""
        if self._part is None:
            return
        for name in ("texts", "vectors"):
            self._connection.execute(
                f"delete from {name} where row in (select row from bodies where part = ?)", (self._part,)
            )
        for name in ("bodies", "postings", "blocks", "parts"):
            self._connection.execute(f"delete from {name} where part = ?", (self._part,))
        self._part = None

    def _names_in(self, rows: pa.Table) -> list[str]:
        return [name for name in self._table.arrow.names if name in rows.schema.names]

    def _prepare(self, rows: pa.Table) -> None:
        """Empty the part where its rows have other columns, or vectors of another length."""
        columns = ",".join(self._names_in(rows))
        is_vector = VECTOR in rows.schema.names
        dimensions = rows.schema.field(VECTOR).type.list_size if is_vector else 0
        if self._part is not None and (columns, dimensions) != (self._columns, self._dimensions):
            self.remove()
        if self._part is None:
            values = (self._scope, self._table.name, columns, dimensions)
            self._part = self._connection.execute(
                "insert into parts (scope, name, columns, rows, words, dimensions) values (?, ?, ?, 0, 0, ?)",
                values,
            ).lastrowid
        self._columns, self._dimensions = columns, dimensions

    def _update(
        self, rows: pa.Table, hashes: Sequence[int], changed: list[int], numbers: list[int]
    ) -> list[int]:
        """Write the bodies of rows that changed; return where the others are."""
        if not changed:
            return []
        bodies, packed = _bodies(rows, changed, self._names_in(rows)), _packed(rows, changed)
        texts = dict(self._values("select row, packed from texts where row in", numbers))
        vectors = dict(self._values("select row, vector from vectors where row in", numbers))
        halves, labels = _halves(rows, changed), _labels(rows, changed)
        again, outdated, same = [], [], []
        for place, (at, row) in enumerate(zip(changed, numbers, strict=True)):
            if (packed[place], halves[place]) == (texts.get(row), vectors.get(row)):
                same.append((bodies[place], _signed(hashes[at]), labels[place], row))
            else:
                again.append(at)
                outdated.append(row)
        self._connection.executemany("update bodies set body = ?, hash = ?, label = ? where row = ?", same)
        if outdated:
            self._remove(outdated)
        return again

    def _add(self, rows: pa.Table, hashes: Sequence[int], places: Sequence[int]) -> None:
        next_row = self._connection.execute("select coalesce(max(row), 0) + 1 from bodies").fetchone()[0]
        for start in range(0, len(places), _ROWS_AT_ONCE):
            chosen = list(places[start : start + _ROWS_AT_ONCE])
            numbers = range(next_row + start, next_row + start + len(chosen))
            keys = rows[self._table.key[0]].take(pa.array(chosen, pa.int64())).to_pylist()
            marks = [_signed(hashes[at]) for at in chosen]
            texts = _bodies(rows, chosen, self._names_in(rows))
            bodies = zip(numbers, keys, marks, texts, _labels(rows, chosen), strict=True)
            self._connection.executemany(
                "insert into bodies (row, part, key, hash, body, label)"
                f" values (?, {self._part}, ?, ?, ?, ?)",
                bodies,
            )
            self._add_words(numbers, _packed(rows, chosen))
            self._add_vectors(numbers, rows, chosen)
        self._count(len(places), 0)

    def _remove(self, numbers: list[int]) -> None:
        for name, value in (("texts", "packed"), ("vectors", "vector")):
            stored = dict(self._values(f"select row, {value} from {name} where row in", numbers))
            if name == "texts":
                self._remove_words(stored)
            else:
                self._remove_vectors([*stored])
            self._connection.executemany(f"delete from {name} where row = ?", ((row,) for row in stored))
        self._connection.executemany("delete from bodies where row = ?", ((row,) for row in numbers))
        self._count(-len(numbers), 0)

    def _add_words(self, numbers: Sequence[int], packed: Sequence[bytes | None]) -> None:
        texts = [(row, text) for row, text in zip(numbers, packed, strict=True) if text is not None]
        self._connection.executemany("insert into texts (row, packed) values (?, ?)", texts)
        lengths, by_word = _counted([text for _, text in texts])
        rows = np.array([row for row, _ in texts], dtype=np.uint32)
        self._connection.executemany(
            f"insert into postings (word, part, entries) values (?, {self._part}, ?)"
            " on conflict do update set entries = cast(entries || excluded.entries as blob)",
            ((word, _entries(rows[at], counts, lengths[at]).tobytes()) for word, at, counts in by_word),
        )
        self._count(0, int(lengths.sum()))

    def _remove_words(self, stored: dict[int, bytes]) -> None:
        lengths, by_word = _counted([*stored.values()])
        gone = np.array([*stored], dtype=np.uint32)
        for word, _, _ in by_word:
            place = (word, self._part)
            stored = self._connection.execute(
                "select entries from postings where word = ? and part = ?", place
            ).fetchone()
            entries = np.frombuffer(stored[0] if stored else b"", ENTRY)
            left = entries[~np.isin(entries["row"], gone)]
            if len(left):
                self._connection.execute(
                    "update postings set entries = ? where word = ? and part = ?", (left.tobytes(), *place)
                )
            else:
                self._connection.execute("delete from postings where word = ? and part = ?", place)
        self._count(0, -int(lengths.sum()))

    def _add_vectors(self, numbers: Sequence[int], rows: pa.Table, places: list[int]) -> None:
        halves = zip(numbers, _halves(rows, places), strict=True)
        known = [(row, half) for row, half in halves if half is not None]
        self._connection.executemany("insert into vectors (row, vector) values (?, ?)", known)
        vector_of = dict(known)
        for block, of_block in _by_block(vector_of):
            vectors = np.stack([np.frombuffer(vector_of[row], "<f2") for row in of_block]).astype(np.float32)
            scales, codes = quantised(vectors)
            added = np.array(of_block, dtype=np.uint32), scales, codes
            self._change_block(block, partial(_joined, added))

    def _remove_vectors(self, numbers: Sequence[int]) -> None:
        for block, of_block in _by_block(sorted(numbers)):
            self._change_block(block, partial(_without, of_block))

    def _change_block(self, block: int, change: Callable[..., list[Any]]) -> None:
        place = (self._part, block)
        stored = self._connection.execute(
            "select rows, scales, codes from blocks where part = ? and block = ?", place
        ).fetchone()
        rows, scales, codes = change(*block_arrays(stored or (b"", b"", b""), self._dimensions))
        if len(rows):
            blobs = rows.tobytes(), scales.tobytes(), codes.tobytes()
            self._connection.execute("insert or replace into blocks values (?, ?, ?, ?, ?)", (*place, *blobs))
        else:
            self._connection.execute("delete from blocks where part = ? and block = ?", place)

    def _count(self, rows: int, words: int) -> None:
        self._connection.execute(
            "update parts set rows = rows + ?, words = words + ? where part = ?", (rows, words, self._part)
        )

    def _values(self, select: str, numbers: Sequence[int] | Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(numbers), _VARIABLES):
            some = numbers[start : start + _VARIABLES]
            yield from self._connection.execute(f"{select} ({','.join('?' * len(some))})", some)


def indexed_hashes(connection: sqlite3.Connection, scope: str, name: str) -> "np.ndarray[Any, Any]":
    """Return the hashes of the rows of a part; none if there is no such part."""
    select = "select hash from bodies where part = (select part from parts where scope = ? and name = ?)"
    rows = connection.execute(select, (scope, name))
    return np.fromiter((number for (number,) in rows), np.int64).view(np.uint64)


def quantised(vectors: "np.ndarray[Any, Any]") -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
    """Return vectors as one byte a number, and what each vector's bytes are to be multiplied by."""
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), 1e-12).astype(np.float32) / np.float32(127)
    return scales, np.rint(vectors / scales[:, None]).astype(np.int8)


def block_arrays(block: tuple[bytes, bytes, bytes], dimensions: int) -> list[Any]:
    """Return a block's row numbers, scales and codes as arrays."""
    rows, scales, codes = block
    numbers = np.frombuffer(rows, "<u4")
    shape = (len(numbers), dimensions)
    return [numbers, np.frombuffer(scales, "<f4"), np.frombuffer(codes, np.int8).reshape(shape)]


def _joined(added: Sequence[Any], *before: Any) -> list[Any]:
    return [np.concatenate(pair) for pair in zip(before, added, strict=True)]


def _without(gone: list[int], *before: Any) -> list[Any]:
    kept = ~np.isin(before[0], gone)
    return [array[kept] for array in before]


def _bodies(rows: pa.Table, places: list[int], names: list[str]) -> list[bytes]:
    import orjson

    chosen = rows.select(names).take(pa.array(places, pa.int64())).to_pylist()
    option = orjson.OPT_PASSTHROUGH_DATETIME
    return [orjson.dumps([*row.values()], default=_microseconds, option=option) for row in chosen]


def _labels(rows: pa.Table, places: list[int]) -> list[str | None]:
    """Return of each memory its type where it says where the work stands, of each passage its section."""
    chosen = pa.array(places, pa.int64())
    if "memory_type" in rows.schema.names:
        types = rows["memory_type"].take(chosen).to_pylist()
        return [name if name in STATE_TYPES else None for name in types]
    if "seq" not in rows.schema.names:
        return [None] * len(places)
    return [
        None if row["kind"] == COMMAND_KIND else section_label(row["file"], row["seq"] // SECTION_ROWS)
        for row in rows.select(["file", "seq", "kind"]).take(chosen).to_pylist()
    ]


def _microseconds(value: datetime) -> int:
    return (value - EPOCH) // timedelta(microseconds=1)


def _packed(rows: pa.Table, places: list[int]) -> list[bytes | None]:
    """Return the text that is searched, packed; None of rows that are not."""
    if INDEX_TEXT not in rows.schema.names:
        return [None] * len(places)
    texts = rows[INDEX_TEXT].take(pa.array(places, pa.int64())).to_pylist()
    return [zlib.compress(str(text).encode(), 1) for text in texts]


def _halves(rows: pa.Table, places: list[int]) -> list[bytes | None]:
    """Return each vector in half precision; None if there is none."""
    if VECTOR not in rows.schema.names:
        return [None] * len(places)
    column: Any = rows[VECTOR].take(pa.array(places, pa.int64())).combine_chunks()
    known = [vector.is_valid for vector in column]
    flat = column.flatten().to_numpy(zero_copy_only=False).astype("<f2")
    halves = iter(flat.reshape(-1, column.type.list_size))
    return [next(halves).tobytes() if is_known else None for is_known in known]


def _counted(packed: Sequence[bytes]) -> tuple[Any, list[tuple[str, Any, Any]]]:
    """Return how many words each text has, and by word in which texts it stands and how often."""
    counted = count_words([zlib.decompress(text).decode() for text in packed])
    lengths = np.zeros(len(packed), dtype=np.int64)
    if not counted:
        return lengths, []
    words, places, counts = zip(*counted, strict=True)
    at, count = np.array(places), np.array(counts)
    np.add.at(lengths, at, count)
    starts = [place for place in range(len(words)) if not place or words[place] != words[place - 1]]
    spans = zip(starts, [*starts[1:], len(words)], strict=True)
    return lengths, [(words[start], at[start:end], count[start:end]) for start, end in spans]


def _entries(rows: Any, counts: Any, lengths: Any) -> Any:
    entries = np.empty(len(rows), ENTRY)
    entries["row"] = rows
    entries["count"], entries["length"] = np.minimum(counts, _MOST), np.minimum(lengths, _MOST)
    return entries


def _by_block(numbers: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    by_block: dict[int, list[int]] = {}
    for row in numbers:
        by_block.setdefault(row // BLOCK_ROWS, []).append(row)
    yield from by_block.items()


def _signed(value: int) -> int:
    """Return a hash as SQLite holds numbers."""
    return value - (1 << 64) if value >= 1 << 63 else value
