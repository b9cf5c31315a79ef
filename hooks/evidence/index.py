"""Reads the search index: its settings, the best rows by words (BM25), rows by their number or key.

Whoever holds a connection to the file may ask: the hook opens it here, the engine in `storage`.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import sys
import zlib
from bisect import bisect_left
from heapq import nlargest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

    Row = dict[str, Any]

from .question import MAX_WORDS, SearchSettings

# Of another layout nothing is read: the next run makes the index again.
SEARCH_VERSION = 3
# Commands are passages with word counts of their own.
MEMORIES, PASSAGES, COMMANDS = "memories", "passages", "commands"
# Types of memories that say where the work stands: the records of sessions, and plans.
STATE_TYPES = ("outcome", "progress")
# Passages of a session that are asked for together, by `section_label`.
SECTION_ROWS = 32

# As in the first measurements of BM25: how soon a repeated word weighs no more, and how much length matters.
_K1, _B = 1.2, 0.75
# Entries read of the rarest words: 60,000 take 12 ms. The words beyond are looked up for the best rows only:
# in a project of 10,000 rows that hardly happens.
MAX_ENTRIES = 60_000
# The best rows by the rarer words, by row wanted, that the commoner words are looked up for.
_ROWS_LOOKED_UP = 4
# Rows that score alike are told apart by their keys, which are read for this many times the wanted rows.
_TIES = 4
_VARIABLES = 500
_ENTRY_BYTES = 8


def open_index(path: str) -> sqlite3.Connection:
    """
    Return a connection that reads, waits for nobody and leaves nothing beside the file.

    While a run writes, the index is read as it was when it was asked first. Raises sqlite3.Error. Afterwards
    `file_state` says whether what was read counts.
    """
    address = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Without a log beside it there is nobody to agree with: the file alone is read, also on a read-only disk.
    mode = "mode=ro" if _size(f"{path}-wal") else "mode=ro&immutable=1"
    return sqlite3.connect(f"{address}?{mode}", uri=True, timeout=0, isolation_level=None)


def file_state(path: str) -> tuple[int, ...]:
    """Return what differs once somebody has written into the file; a reader without locks looks twice."""
    matches = os.stat(path)
    return matches.st_ino, matches.st_size, matches.st_mtime_ns


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


class Part:
    """One table of one scope in an index."""

    __slots__ = ("columns", "dimensions", "part", "rows", "scope", "words")

    def __init__(self, part: int, scope: str, columns: str, rows: int, words: int, dimensions: int) -> None:
        self.part, self.scope, self.columns = part, scope, columns.split(",")
        self.rows, self.words, self.dimensions = rows, words, dimensions


def index_parts(connection: sqlite3.Connection | None, scopes: Collection[str], name: str) -> list[Part]:
    """Return what an index has of the table `name` of some scopes."""
    if connection is None:
        return []
    select = "select part, scope, columns, rows, words, dimensions from parts where name = ? order by part"
    wanted = set(scopes)
    return [Part(*row) for row in connection.execute(select, (name,)) if row[1] in wanted]


def layout_version(connection: sqlite3.Connection) -> int:
    """Return the layout of an index; 0 of an empty file. Raises sqlite3.Error."""
    (version,) = connection.execute("pragma user_version").fetchone()
    return int(version)


def read_settings(connection: sqlite3.Connection) -> SearchSettings:
    """Return the settings that the last run wrote. Raises sqlite3.Error, ValueError or KeyError."""
    (text,) = connection.execute("select value from settings where name = 'search'").fetchone()
    document = json.loads(text)
    return SearchSettings(**document)


def ranks_in(connection: sqlite3.Connection, words: Sequence[str]) -> dict[str, int]:
    """Return the place of common words by their frequency in English, from 1."""
    asked = f"select word, rank from word_ranks where word in ({','.join('?' * len(words))})"
    return dict(connection.execute(asked, words)) if words else {}


def best_rows(
    connection: sqlite3.Connection | None, parts: Sequence[Part], words: Sequence[str], limit: int
) -> list[tuple[int, float]]:
    """
    Return the numbers and BM25 scores of the `limit` best rows of these parts, best first.

    A word weighs by the rows of these parts that hold it: what other scopes hold changes nothing. Of rows
    that score alike those with the lower keys are taken. If the words have more than MAX_ENTRIES entries,
    the most common ones are looked up only for the best rows by the others.
    """
    if connection is None or not words or limit <= 0:
        return []
    count, length = sum(part.rows for part in parts), sum(part.words for part in parts)
    if not count:
        return []
    places = [part.part for part in parts]
    mean = max(length / count, 1e-9)
    scores: dict[int, float] = {}
    entries_left, is_whole = MAX_ENTRIES, True
    for entries, word in _by_rarity(connection, places, words)[:MAX_WORDS]:
        weights = _Weights(math.log(1 + (count - entries + 0.5) / (entries + 0.5)), mean)
        entries_left -= entries
        if scores and entries_left < 0:
            if is_whole and len(scores) > limit * _ROWS_LOOKED_UP:
                scores = dict(_highest(connection, scores, limit * _ROWS_LOOKED_UP))
            is_whole = False
            _look_up(connection, places, word, scores, weights)
            continue
        known = scores.get
        for numbers in _entries_of(connection, places, word):
            for row, packed in zip(numbers[::2], numbers[1::2]):
                scores[row] = known(row, 0.0) + weights[packed]
    return _highest(connection, scores, limit)


class _Weights(dict):  # type: ignore[type-arg]
    """What an entry adds to its row's score, by how often the word stands there and how long the row is."""

    def __init__(self, rarity: float, mean: float) -> None:
        self._rarity, self._mean = rarity, mean

    def __missing__(self, packed: int) -> float:
        often, long = packed & 0xFFFF, packed >> 16
        weight = self._rarity * often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * long / self._mean))
        self[packed] = weight
        return weight


def _by_rarity(
    connection: sqlite3.Connection, places: Sequence[int], words: Sequence[str]
) -> list[tuple[int, str]]:
    """Return how many rows hold each word that any holds, with the word, the rarest first."""
    sizes = []
    for word in words:
        # The length of a value is known without reading it.
        total = sum(size for _, size in _values(connection, places, word, "length(entries)"))
        if total:
            sizes.append((total // _ENTRY_BYTES, word))
    return sorted(sizes)


def _values(
    connection: sqlite3.Connection, places: Sequence[int], word: str, what: str
) -> Iterator[tuple[int, Any]]:
    """Yield part and value of a word's entries in these parts: asked for one by one where they are few."""
    if len(places) <= 16:
        asked = f"select part, {what} from postings where word = ? and part = ?"
        for part in places:
            yield from connection.execute(asked, (word, part))
        return
    wanted = set(places)
    everywhere = connection.execute(f"select part, {what} from postings where word = ?", (word,))
    yield from (row for row in everywhere if row[0] in wanted)


def _entries_of(connection: sqlite3.Connection, places: Sequence[int], word: str) -> Iterator[list[int]]:
    """Yield a word's entries: numbers of rows, each with how often it stands there and the row's length."""
    for _, blob in _values(connection, places, word, "entries"):
        yield _numbers_in(blob).tolist()


def _numbers_in(blob: bytes) -> memoryview:
    if sys.byteorder == "big":
        from array import array

        numbers = array("I", blob)
        numbers.byteswap()
        return memoryview(numbers)
    return memoryview(blob).cast("I")


def _look_up(
    connection: sqlite3.Connection,
    places: Sequence[int],
    word: str,
    scores: dict[int, float],
    weights: _Weights,
) -> None:
    """Add what a word weighs to the rows that have a score; its entries are in the order of rows."""
    for _, blob in _values(connection, places, word, "entries"):
        numbers = _numbers_in(blob)
        rows, packed = numbers[::2], numbers[1::2]
        at, end = 0, len(rows)
        for row in sorted(scores):
            at = bisect_left(rows, row, at, end)
            if at == end:
                break
            if rows[at] == row:
                scores[row] += weights[packed[at]]


def _highest(connection: sqlite3.Connection, scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
    """Return the `limit` rows with the highest scores, best first; of equal ones the lower keys."""
    if len(scores) <= limit:
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    least = nlargest(limit, scores.values())[-1]
    above = [pair for pair in scores.items() if pair[1] > least]
    tied = sorted(row for row, score in scores.items() if score == least)
    wanted = limit - len(above)
    if len(tied) > wanted:
        tied = tied[: limit * _TIES]
        keys = dict(_chunked(connection, "select row, key from bodies where row in", tied))
        tied.sort(key=lambda row: str(keys.get(row)))
    return [*sorted(above, key=lambda pair: (-pair[1], pair[0])), *((row, least) for row in tied[:wanted])]


def rows_by_number(
    connection: sqlite3.Connection, parts: Sequence[Part], numbers: Iterable[int]
) -> dict[int, Row]:
    """Return rows by their number, each with its columns; instants are microseconds since 1970."""
    asked = "select row, part, body from bodies where row in"
    return _decoded(_chunked(connection, asked, sorted(numbers)), parts)


def rows_by_key(
    connection: sqlite3.Connection, parts: Sequence[Part], keys: Collection[str]
) -> dict[int, Row]:
    """Return the rows with these keys by their number."""
    matches: dict[int, Row] = {}
    for part in parts:
        asked = f"select row, part, body from bodies where part = {part.part} and key in"
        matches.update(_decoded(_chunked(connection, asked, sorted(keys)), parts))
    return matches


def section_label(file: str, section: int) -> str:
    """Return the label of the passages of a file whose `seq` divided by SECTION_ROWS is `section`."""
    return f"{zlib.crc32(file.encode('utf-8', 'surrogatepass')):08x}:{section}"


def labelled_rows(connection: sqlite3.Connection, parts: Sequence[Part], label: str) -> list[Row]:
    """Return the memories of one of STATE_TYPES, or the passages of a section by `section_label`."""
    matches: list[Row] = []
    for part in parts:
        asked = "select row, part, body from bodies where part = ? and label = ?"
        matches += _decoded(connection.execute(asked, (part.part, label)), parts).values()
    return matches


def all_rows(connection: sqlite3.Connection, parts: Sequence[Part]) -> list[Row]:
    """Return all rows of some parts, in no order."""
    matches: list[Row] = []
    for part in parts:
        asked = "select row, part, body from bodies where part = ?"
        matches += _decoded(connection.execute(asked, (part.part,)), parts).values()
    return matches


def _chunked(connection: sqlite3.Connection, asked: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(values), _VARIABLES):
        some = values[start : start + _VARIABLES]
        yield from connection.execute(f"{asked} ({','.join('?' * len(some))})", some)


def _decoded(matches: Iterable[tuple[Any, ...]], parts: Sequence[Part]) -> dict[int, Row]:
    columns = {part.part: part.columns for part in parts}
    known = [row for row in matches if row[1] in columns]
    # All of them as one document: one by one takes twice as long.
    bodies = json.loads("[%s]" % ",".join([str(body, "utf-8") for _, _, body in known]))
    return {number: dict(zip(columns[part], body)) for (number, part, _), body in zip(known, bodies)}
