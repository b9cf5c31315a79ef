"""Runs a read-only query on the store's tables; opens the store as it was on an earlier day."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
from cortex.transforms.errors import QueryTooLong, UsageError
from cortex.transforms.schemas import (
    CALLS,
    EVENTS,
    GLOBAL_SCOPE,
    JOURNAL,
    TURNS,
)


def store_as_of(
    context: Context, date: str, scopes: Sequence[str] | None = None, *, searchable: bool = False
) -> Run:
    """
    Return the store as it was at the end of a UTC day, `date` as `2026-09-14`; default: every scope.

    Raises UsageError for what is not such a date, and for days to come.
    """
    try:
        day = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"Not a date: '{date}'.", "Use YYYY-MM-DD: --as-of 2026-09-14") from error
    run = read_only_run(context)
    if day > run.day:
        raise UsageError(f"{date} is in the future.", "Give today or an earlier day.")
    return as_of(run, day, run.readings.scopes() if scopes is None else scopes, searchable=searchable)


# -- Runs a read-only query on the store's tables.

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


def query_tables(
    context: Context, query: str, *, as_of: str | None = None, limits: QueryLimits | None = None
) -> QueryResult:
    """
    Run a query on the store's tables, as they are or as of a day; without `limits` it may take what it needs.

    Raises UsageError for what DuckDB refuses, QueryTooLong, NotFound if nothing is published.
    """
    try:
        check_reads(query)
        with _database(context, query, as_of, limits) as database:
            return _result(database, query, limits)
    except duckdb.InterruptException as error:
        seconds = limits.seconds if limits else 0
        raise QueryTooLong(
            f"The query was stopped after {seconds:g} seconds.",
            "Ask for less: fewer rows, one session, no join.",
        ) from error
    except duckdb.PermissionException as error:
        raise UsageError(
            "A query sees the tables of the store, no other file and no network.",
            f"{TABLES_HINT} Files: any DuckDB client.",
        ) from error
    except duckdb.Error as error:
        if as_of is None and not isinstance(error, duckdb.ProgrammingError):  # the query itself is sound
            context.open_store().lake.check_readable(FROM_THE_LAKE)
        raise UsageError(f"DuckDB says: {error}\n", TABLES_HINT) from error


def _result(database: Any, query: str, limits: QueryLimits | None) -> QueryResult:
    if limits is None:
        relation = database.sql(query)
        if relation is None:  # a statement that returns no rows
            return QueryResult((), ())
        return QueryResult(tuple(relation.columns), tuple(relation.fetchall()))
    clock = threading.Timer(limits.seconds, database.interrupt)
    clock.daemon = True
    clock.start()
    try:
        cursor = database.execute(query)
        columns = tuple(column[0] for column in cursor.description or ())
        rows = cursor.fetchmany(limits.rows + 1) if columns else []
    finally:
        clock.cancel()
    return QueryResult(columns, tuple(rows[: limits.rows]), len(rows) > limits.rows)


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
