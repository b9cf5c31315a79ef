"""Runs the queries of transforms/sql on a sealed in-memory DuckDB: no files, one thread, UTC."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from cortex.transforms.errors import CortexError

# Imported with the first query: a run in which nothing is new asks none.
if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# One thread: float sums differ between runs on several. No replacement scans: a misspelt table must not
# find a Python variable of that name.
ISOLATED: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "python_scan_all_frames": False,
}

# A question about few rows is planned for 5 to 40 ms and answered in less, and briefs, archives and tables
# ask the same ones. So many answers are kept, to questions about at most so many bytes of rows.
ANSWERS_KEPT = 256
BYTES_ASKED_MAX = 256 * 1024
_answers: dict[bytes, pa.Table] = {}

# One connection for all threads, one query at a time: a connection kept for each would outlive its thread.
_LOCK = threading.Lock()


def query(name: str, params: Mapping[str, object], **tables: pa.Table) -> pa.Table:
    """
    Return the result of `transforms/sql/<name>.sql` over `tables`, with `params` for its `$names`.

    A call sees nothing but these tables and leaves the next nothing but its answer to the same question; the
    connection itself is kept, since opening one takes 10 ms. Only parameters that the query names may be
    given. Instants must be timezone-aware.

    Raises CortexError, naming the file, if the query fails.
    """
    import duckdb

    asked = _asked(name, params, tables)
    with _LOCK:
        if asked in _answers:
            return _answers[asked]
        connection = _isolated_connection()
        try:
            for table_name, table in tables.items():
                connection.register(table_name, table)
            # Not `sql`, which parses and binds a query twice: for small tables a third of the time.
            rows = _rows(connection.execute(_parsed(sql_text(name)), dict(params)))
            if asked and rows.nbytes <= BYTES_ASKED_MAX:
                if len(_answers) == ANSWERS_KEPT:
                    del _answers[next(iter(_answers))]
                _answers[asked] = rows
            return rows
        except duckdb.Error as error:
            raise CortexError(
                f"transforms/sql/{name}.sql failed: {error}.",
                "Run `cortex doctor`, then report it with this message.",
            ) from error
        finally:
            for table_name in tables:
                connection.unregister(table_name)


def _asked(name: str, params: Mapping[str, object], tables: Mapping[str, pa.Table]) -> bytes:
    """Return a digest of a question and its rows; empty if these are many."""
    import pyarrow as pa

    if sum(table.nbytes for table in tables.values()) > BYTES_ASKED_MAX:
        return b""
    digest = hashlib.blake2b(repr((sql_text(name), sorted(params.items()))).encode(), digest_size=16)
    for table_name, table in sorted(tables.items()):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table.combine_chunks())
        digest.update(table_name.encode() + b"\0" + sink.getvalue().to_pybytes())
    return digest.digest()


@cache
def _parsed(text: str) -> duckdb.Statement:
    (statement,) = _isolated_connection().extract_statements(text)
    return statement


def _rows(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return the rows of the query asked last; DuckDB 1 has another name for that."""
    names = ("to_arrow_table", "fetch_arrow_table")
    rows: pa.Table = next(getattr(connection, name) for name in names if hasattr(connection, name))()
    return rows


@cache
def sql_text(name: str) -> str:
    """Return the text of a query that comes with the package; it is code, read once."""
    return resources.files("cortex.transforms.sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def open_isolated(
    config: Mapping[str, str | bool | int | float | list[str]] = ISOLATED,
) -> duckdb.DuckDBPyConnection:
    """Return a new in-memory database that sees what is registered with it, no file and no network."""
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(config))
    # The machine's time zone would leak into every date otherwise.
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("set lock_configuration = true")
    return connection


@cache
def _isolated_connection() -> duckdb.DuckDBPyConnection:
    # Copying rows once more costs nothing compared with a query.
    warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
    return open_isolated()
