"""Runs a read-only query on the store's tables."""

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from cortex.flows.as_of import end_of
from cortex.flows.context import Context
from cortex.flows.database import derived_tables
from cortex.flows.operations.past import store_as_of
from cortex.flows.run import Run
from cortex.storage.published_views import ALL_NAMES, FROM_THE_LAKE
from cortex.storage.sandboxed_sql import check_reads, database_of, database_of_store
from cortex.transforms.errors import UsageError
from cortex.transforms.memory.as_of import journal_until
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, JOURNAL, TURNS

TABLES_HINT = f"The tables: {', '.join(ALL_NAMES)}."


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query with the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def query_tables(context: Context, query: str, *, as_of: str | None = None) -> QueryResult:
    """
    Run a query on the store's tables, as they are or as of a day.

    Raises UsageError for what DuckDB refuses, NotFound where nothing is published.
    """
    try:
        check_reads(query)
        with _database(context, query, as_of) as database:
            relation = database.sql(query)
            if relation is None:  # a statement that returns no rows
                return QueryResult((), ())
            return QueryResult(tuple(relation.columns), tuple(relation.fetchall()))
    except duckdb.PermissionException as error:
        raise UsageError(
            "A query sees the tables of the store, no other file and no network.",
            f"{TABLES_HINT} Files: any DuckDB client.",
        ) from error
    except duckdb.Error as error:
        if as_of is None and not isinstance(error, duckdb.ProgrammingError):  # the query itself is sound
            context.open_store().lake.check_readable(FROM_THE_LAKE)
        raise UsageError(f"DuckDB says: {error}\n", TABLES_HINT) from error


def _database(context: Context, query: str, as_of: str | None) -> Any:
    """Return a sealed connection that sees the store. Raises NotFound where nothing is published."""
    if as_of is not None:
        return database_of(_tables_of(store_as_of(context, as_of)))
    store = context.open_store()
    return database_of_store(store.published, store.lake, query, store.projects.merged())


def _tables_of(past: Run) -> dict[str, pa.Table]:
    """Return the tables that a query sees, by name: the lake's and the projections as they were."""
    read = past.readings
    scopes = [scope for scope in read.scopes() if scope != GLOBAL_SCOPE]
    journal = journal_until(past.store.journal.read(), end_of(past))
    return {
        "turns": pa.concat_tables([TURNS.empty(), *(read.turns(scope) for scope in scopes)]),
        "events": pa.concat_tables([EVENTS.empty(), *(read.events(scope) for scope in read.scopes())]),
        "journal": pa.concat_tables([JOURNAL.empty(), journal]),
        **derived_tables(past),
    }
