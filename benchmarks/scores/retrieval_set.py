"""A data set that recall is measured on: rows of a corpus, and queries with the rows that answer them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pyarrow as pa

from cortex.flows.embedders import Embedder
from cortex.storage.tables.tables import GrowingTables
from cortex.transforms.errors import UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import PASSAGES, TURNS, Row
from cortex.transforms.search import embedded_text, index_text, passages_of

# What a data set may call the two sides of a dialogue; any other role is taken for a speaker's name.
PEOPLE = frozenset({"user", "human", "person"})
PROGRAMS = frozenset({"assistant", "ai", "agent", "model", "system", "tool"})
_NO_PROJECT = "corpus"
UNNAMED_CATEGORY = "all"


@dataclass(frozen=True)
class CorpusRow:
    """One row: what was said, in which session, when (None if unknown), by whom and in which project."""

    id: str
    text: str
    session: str
    time: datetime | None
    role: str | None = None
    project: str | None = None

    @property
    def scope(self) -> str:
        """The scope it is put in: of any name a project may have, one that can be a folder's."""
        return scope_of(self.project)


@dataclass(frozen=True)
class Query:
    """One question, the ids of the rows that answer it (none: nothing does), and what kind it is."""

    id: str
    text: str
    evidence: frozenset[str]
    category: str = UNNAMED_CATEGORY
    project: str | None = None


def scope_of(project: str | None) -> str:
    """Return the scope that the rows of a project are put in."""
    return _NO_PROJECT if project is None else f"{_NO_PROJECT}-{content_id(project)[:16]}"


def corpus_row(value: object, where: str) -> CorpusRow:
    """
    Return the row of a JSON value: id, text, session, time, and where known role and project.

    `time` is an ISO 8601 date or instant (without an offset: UTC), seconds since 1970, or null. Raises
    UsageError, which begins with `where`.
    """
    row = _object(value, where)
    return CorpusRow(
        _text(row, "id", where),
        _text(row, "text", where, may_be_empty=True),
        _text(row, "session", where),
        _time(row, where),
        _optional(row, "role", where),
        _optional(row, "project", where),
    )


def corpus_query(value: object, where: str) -> Query:
    """Return the query of a JSON value: id, text, evidence, and where known category and project."""
    row = _object(value, where)
    evidence = row.get("evidence")
    if not isinstance(evidence, list) or not all(isinstance(name, str | int) for name in evidence):
        raise _refused(where, "'evidence' must be a list of ids of the corpus")
    return Query(
        _text(row, "id", where),
        _text(row, "text", where),
        frozenset(map(str, evidence)),
        _optional(row, "category", where) or UNNAMED_CATEGORY,
        _optional(row, "project", where),
    )


class Positions:
    """Where the rows of each session stand: its lines and passages counted as they come, in any order."""

    def __init__(self) -> None:
        self._line: dict[tuple[str, str], int] = {}
        self._seq: dict[tuple[str, str], int] = {}

    def passages(self, rows: Iterable[CorpusRow], policy: Policy) -> pa.Table:
        """Return the PASSAGES of some rows of one scope; each keeps its row's id as `turn_id`."""
        turns = []
        scope = _NO_PROJECT
        for row in rows:
            scope = row.scope
            line = self._line[scope, row.session] = self._line.get((scope, row.session), 0) + 1
            turns.append(_turn(row, line))
        passages = passages_of(TURNS.of(turns), policy).to_pylist()
        counts: dict[tuple[str, str], int] = {}
        for passage in passages:
            key = (scope, passage["session_id"])
            counts[key] = max(counts.get(key, 0), passage["seq"] + 1)
            passage["seq"] += self._seq.get(key, 0)
        for key, count in counts.items():
            self._seq[key] = self._seq.get(key, 0) + count
        return PASSAGES.of(passages)


def _turn(row: CorpusRow, line: int) -> Row:
    role = (row.role or "").strip().lower()
    is_named = role and role not in PEOPLE | PROGRAMS
    return {
        "turn_id": row.id,
        "project_id": row.scope,
        "session_id": row.session,
        "file": row.session,
        "line": line,
        "block": 0,
        "kind": "text" if role in PROGRAMS else "prompt",
        "said_at": row.time,
        "text": f"{row.role}: {row.text}" if is_named else row.text,
        "trust": "assistant" if role in PROGRAMS else "user",
        "redactions": 0,
        "reader_version": 1,
    }


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _refused(where, "a row must be a JSON object")
    return value


def _text(row: Mapping[str, object], name: str, where: str, *, may_be_empty: bool = False) -> str:
    value = row.get(name)
    # Numbers name rows in some data sets; true and false name nothing.
    if isinstance(value, int) and not isinstance(value, bool) and name != "text":
        value = str(value)
    if not isinstance(value, str) or not (value.strip() or may_be_empty):
        raise _refused(where, f"'{name}' must be text" + ("" if may_be_empty else " and not empty"))
    return value


def _optional(row: Mapping[str, object], name: str, where: str) -> str | None:
    return None if row.get(name) in (None, "") else _text(row, name, where)


def _time(row: Mapping[str, object], where: str) -> datetime | None:
    value = row.get("time", "")
    try:
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)
        if isinstance(value, str):
            instant = datetime.fromisoformat(value.strip())
            return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _refused(where, "'time' must be an ISO 8601 date or instant, seconds since 1970, or null")


def _refused(where: str, problem: str) -> UsageError:
    return UsageError(
        f"{where}: {problem}.",
        "A row of the corpus is {id, text, session, time, role?, project?}, a query "
        "{id, text, evidence, category?, project?}; see `cortex eval retrieval --help`.",
    )


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
            self._tables.append(scope, PASSAGES.name, searchable(passages, self._embedder))

    def _note_places(self, scope: str, passages: pa.Table) -> None:
        columns = (passages[name].to_pylist() for name in ("turn_id", "session_id", "line"))
        for name, session, line in zip(*columns, strict=True):
            if name in self._wanted:
                self.ids.add(name)
                self.id_at[scope, session, line] = name


def searchable(passages: pa.Table, embedder: Embedder | None) -> pa.Table:
    """Return passages or memories with their index text and, with a model, the vectors of their prose."""
    rows = passages.to_pylist()
    passages = passages.append_column("index_text", pa.array([index_text(row) for row in rows], pa.string()))
    if embedder is None:
        return passages
    texts = [embedded_text(row) for row in rows]
    prose = [text for text in texts if text]
    vectors = iter(embedder.embed(prose) if prose else ())
    column = [next(vectors) if text else None for text in texts]
    return passages.append_column("vector", pa.array(column, pa.list_(pa.float32(), embedder.dimensions)))
