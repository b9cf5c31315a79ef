"""Runs a read-only query on the store's tables; opens the store as it was on an earlier day."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.past.as_of import as_of, end_of, journal_until
from cortex.flows.publishing.database import derived_tables
from cortex.flows.run.run import Run
from cortex.storage.published.published import ALL_NAMES, FROM_THE_LAKE
from cortex.storage.published.sandboxed_sql import check_reads, database_of, database_of_store
from cortex.storage.settings.settings import load_settings
from cortex.transforms.errors import CortexError, QueryTooLong, UsageError
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import CALLS, EVENTS, GLOBAL_SCOPE, JOURNAL, TURNS
from cortex.transforms.words.ages import start_of


def store_as_of(
    context: Context, date: str, scopes: Sequence[str] | None = None, *, searchable: bool = False
) -> Run:
    """
    Return the store as it was at the end of a UTC day, `date` as `start_of` reads it; default: every scope.

    Raises UsageError for what is not such a date, and for days to come.
    """
    day = start_of(date, "--as-of", context.now)
    run = read_only_run(context)
    if day > run.day:
        raise UsageError(f"{date} is in the future.", "Give today or an earlier day.")
    return as_of(run, day, run.readings.scopes() if scopes is None else scopes, searchable=searchable)


TABLES_HINT = f"The tables: {', '.join(ALL_NAMES)}."


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query with the names of their columns; `is_cut` where a limit left some out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    is_cut: bool = False


@dataclass(frozen=True)
class QueryLimits:
    """What a query may take: rows of its result, seconds, and mebibytes of memory."""

    rows: int
    seconds: float
    memory_mib: int


# Of a value and of a whole result no more is handed over: what is longer is cut, and said to be.
MAX_VALUE_CHARS, MAX_ITEMS, MAX_RESULT_CHARS = 100_000, 10_000, 8_000_000
# Beyond its time a query is interrupted; one that is inside of a single value then hears nothing.
KILL_AFTER_S = 2.0


def query_tables(
    context: Context,
    query: str,
    *,
    as_of: str | None = None,
    limits: QueryLimits | None = None,
    seconds: float | None = None,
) -> QueryResult:
    """
    Run a query on the store's tables, as they are or as of a day; without `limits` it may take what it needs.

    With `limits` it runs in a process of its own, which a value without end takes along. `seconds` limits
    its time alone. Raises UsageError for what DuckDB refuses, QueryTooLong, NotFound if nothing is published.
    """
    if limits is not None:
        check_reads_of(query)
        return _PROCESS.result_of(context, query, limits)
    return _answered(context, query, as_of, None, seconds)


def check_reads_of(query: str) -> None:
    """Raise UsageError where `query` does more than read, or is no SQL."""
    try:
        check_reads(query)
    except duckdb.Error as error:
        raise _refused(error, query) from error


def _answered(
    context: Context, query: str, as_of: str | None, limits: QueryLimits | None, seconds: float | None
) -> QueryResult:
    failure: BaseException
    try:
        check_reads(query)
        with _database(context, query, as_of, limits) as database:
            return _result(database, query, limits, seconds)
    except duckdb.InterruptException:
        failure = _too_long(seconds or 0)
    except duckdb.PermissionException:
        failure = UsageError(
            "A query sees the tables of the store, no other file and no network.",
            f"{TABLES_HINT} Files: any DuckDB client.",
        )
    except duckdb.Error as error:
        if as_of is None and not isinstance(error, duckdb.ProgrammingError):  # the query itself is sound
            context.open_store().lake.check_readable(FROM_THE_LAKE)
        failure = _refused(error, query)
    except RuntimeError as error:
        if "interrupted" not in str(error):
            raise
        failure = KeyboardInterrupt()  # what DuckDB makes of Ctrl-C
    # Outside of the handlers: a chain of errors would keep the database beyond the end of the program.
    database = None
    raise failure


def _refused(error: duckdb.Error, query: str) -> UsageError:
    """Return what DuckDB says of a query; of one with a secret without the excerpt, which may cut it."""
    text = str(error)
    if redact(query)[1]:
        text = redact(text.partition("\n\nLINE ")[0])[0]
    return UsageError(f"DuckDB says: {text}\n", TABLES_HINT)


def _too_long(seconds: float) -> QueryTooLong:
    return QueryTooLong(
        f"The query was stopped after {seconds:g} seconds.", "Ask for less: fewer rows, one session, no join."
    )


def _result(database: Any, query: str, limits: QueryLimits | None, seconds: float | None) -> QueryResult:
    with _stopped_after(database, seconds):
        cursor = database.execute(query)
        columns = tuple(column[0] for column in cursor.description or ())
        if limits is None or not columns:
            return QueryResult(columns, tuple(cursor.fetchall()) if columns else ())
        return _bounded(columns, cursor, limits.rows)


@contextmanager
def _stopped_after(database: Any, seconds: float | None) -> Iterator[None]:
    clock = threading.Timer(seconds or 0, database.interrupt)
    clock.daemon = True
    if seconds is not None:
        clock.start()
    try:
        yield
    finally:
        clock.cancel()


def _bounded(columns: tuple[str, ...], cursor: Any, most: int) -> QueryResult:
    """Return as many rows as are wanted and as fit, their values cut."""
    rows: list[tuple[object, ...]] = []
    room = MAX_RESULT_CHARS
    while row := cursor.fetchone():
        cut = tuple(_cut(value) for value in row)
        room -= sum(len(value) if isinstance(value, str | bytes) else 16 for value in cut)
        if len(rows) == most or room < 0:
            return QueryResult(columns, tuple(rows), is_cut=True)
        rows.append(cut)
    return QueryResult(columns, tuple(rows))


def _cut(value: object) -> object:
    match value:
        case str() if len(value) > MAX_VALUE_CHARS:
            return value[:MAX_VALUE_CHARS] + "…"
        case bytes():
            return value[:MAX_VALUE_CHARS]
        case list() | tuple():
            return [_cut(each) for each in value[:MAX_ITEMS]]
        case dict():
            return {_cut(key): _cut(each) for key, each in list(value.items())[:MAX_ITEMS]}
        case _:
            return value


def _database(context: Context, query: str, as_of: str | None, limits: QueryLimits | None) -> Any:
    """Return a sealed connection that sees the store. Raises NotFound if nothing is published."""
    if as_of is not None:
        return database_of(_tables_of(store_as_of(context, as_of)))
    store = context.open_store()
    return database_of_store(
        store.published,
        store.lake,
        query,
        store.projects.merged(),
        context.visible,
        limits.memory_mib if limits else None,
        context.hidden_tables,
    )


def _tables_of(past: Run) -> dict[str, pa.Table]:
    """Return the tables that a query sees, by name: the lake's and the projections as they were."""
    read = past.readings
    scopes = [scope for scope in read.scopes() if scope != GLOBAL_SCOPE]
    journal = journal_until(past.store.journal.read(), end_of(past))
    return {
        "turns": pa.concat_tables([TURNS.empty(), *(read.turns(scope) for scope in scopes)]),
        "events": pa.concat_tables([EVENTS.empty(), *(read.events(scope) for scope in read.scopes())]),
        "journal": pa.concat_tables([JOURNAL.empty(), journal]),
        "calls": past.store.lake.read(CALLS).filter(pc.field("called_at") < pa.scalar(end_of(past))),
        **derived_tables(past),
    }


# -- The process in which a query with limits runs: one at a time, of this module, by `python -m`.


@dataclass(frozen=True)
class _Request:
    home: Path
    query: str
    limits: QueryLimits
    visible: frozenset[str] | None
    hidden_tables: frozenset[str]
    checks_projections: bool
    now: datetime


class _QueryProcess:
    """
    A process that answers one query after another; it is killed with a query that does not end.

    DuckDB looks at its limits between values: one value may take gigabytes, or minutes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def result_of(self, context: Context, query: str, limits: QueryLimits) -> QueryResult:
        request = _Request(
            context.home,
            query,
            limits,
            context.visible,
            context.hidden_tables,
            context.checks_projections,
            context.now,
        )
        with self._lock:
            process = self._running()
            is_late = threading.Event()

            def end() -> None:
                is_late.set()
                process.kill()

            clock = threading.Timer(limits.seconds + KILL_AFTER_S, end)
            clock.daemon = True
            clock.start()
            try:
                answer = _asked(process, pickle.dumps(request))
            finally:
                clock.cancel()
            if answer is None:
                process.kill()
                process.wait()
        if answer is None and is_late.is_set():
            raise _too_long(limits.seconds)
        if answer is None:
            raise QueryTooLong(
                f"The query needs more than {limits.memory_mib} MiB of memory.",
                "Ask for less: fewer rows, shorter texts, an aggregate.",
            )
        result = pickle.loads(answer)
        if isinstance(result, CortexError):
            raise result
        assert isinstance(result, QueryResult)
        return result

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __spec__.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert self._process.stdout is not None
            self._process.stdout.read(len(_READY))
        return self._process


_PROCESS = _QueryProcess()
_READY = b"+"
_LENGTH_BYTES = 8


def _asked(process: "subprocess.Popen[bytes]", request: bytes) -> bytes | None:
    """Return the answer of a process; None if it ended."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        _write(process.stdin, request)
        return _read(process.stdout)
    return None


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    length = int.from_bytes(pipe.read(_LENGTH_BYTES), "big")
    data = pipe.read(length) if length else b""
    return data if data and len(data) == length else None


def _limit_memory(mebibytes: int) -> None:
    """Let this process take so much more than it has; where the system cannot, DuckDB's own limit is left."""
    try:
        import resource

        taken = next(
            int(line.split()[1]) * 1024
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("VmData")
        )
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (taken + mebibytes * 1024 * 1024, most))
    except (ImportError, OSError, ValueError, StopIteration):
        return


def _answer(request: _Request) -> QueryResult | CortexError:
    context = replace(
        Context(load_settings(request.home), clock=lambda: request.now),
        visible=request.visible,
        hidden_tables=request.hidden_tables,
        checks_projections=request.checks_projections,
    )
    try:
        return _answered(context, request.query, None, request.limits, request.limits.seconds)
    except CortexError as error:
        return error


def main() -> None:
    """Serve the process that started this one; nothing else may write to its pipe."""
    from cortex.flows.operations.ask import sql  # what is pickled belongs to the module by its own name

    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    replies.write(_READY)
    replies.flush()
    while given := _read(sys.stdin.buffer):
        request = pickle.loads(given)
        sql._limit_memory(request.limits.memory_mib * 3)
        _write(replies, pickle.dumps(sql._answer(request)))


if __name__ == "__main__":
    main()
