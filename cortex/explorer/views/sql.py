"""SQL over the store, read-only and with limits, and its rows as files."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from starlette.responses import Response

from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.ask import sql
from cortex.flows.operations.ask.sql import QueryLimits, QueryResult
from cortex.storage.published.published_views import VIEW_MEANINGS
from cortex.transforms.errors import CortexError

# What a page shows is looked at by a person; a file may hold more.
ROWS_SHOWN, ROWS_IN_A_FILE = 100, 100_000
SECONDS, MEMORY_MIB = 10.0, 1_000
CELL_CHARS_SHOWN = 200

EXAMPLES = (
    ("Decisions of the last 30 days", (
        "select created_at::date as day, project_id, text, reason from memories\n"
        "where memory_type = 'decision' and status = 'active'\n"
        "  and created_at >= (select max(created_at) from memories) - interval 30 days\n"
        "order by created_at desc"
    )),
    ("Said again and again", (
        "select session_count, memory_type, project_id, text from memories\n"
        "where status = 'active' and session_count > 1\norder by session_count desc, text limit 20"
    )),
    ("Files changed most", (
        "select argument as path, count(*) as changes, count(distinct session_id) as sessions\n"
        "from tool_calls where tool_name in ('Edit', 'MultiEdit', 'Write')\n"
        "group by path order by sessions desc, changes desc, path limit 20"
    )),
    ("Corrections by month", (
        "select date_trunc('month', began_at) as month, count(*) as sessions,\n"
        "  sum(corrections) as corrections from metrics\nwhere began_at is not null\n"
        "group by month order by month"
    )),
)  # fmt: skip

MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def show_sql(request: ViewRequest) -> Page:
    """Show the query in the address and its first rows; an error of DuckDB is shown next to it."""
    query = request.query.get("q", "")
    answer, problem = QueryResult((), ()), ""
    if query.strip():
        try:
            answer = _rows(request, ROWS_SHOWN)
        except CortexError as error:
            problem = f"{error.problem.strip()} {error.next_step}"
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    data = {"query": query, "problem": problem, "columns": answer.columns, "rows": rows}
    files = {name: f"/sql/rows.{name}?{request.link(done='').partition('?')[2]}" for name in MEDIA_TYPES}
    examples = [(name, ViewRequest(request.context, "/sql").link(q=text)) for name, text in EXAMPLES]
    extra = {
        "examples": examples,
        "tables": VIEW_MEANINGS,
        "files": files,
        "cells": [[_cell(value) for value in row] for row in answer.rows],
        "numbers": [_are_numbers(answer.rows, at) for at in range(len(answer.columns))],
        "seconds": SECONDS,
        "most": ROWS_IN_A_FILE,
    }
    return Page("sql.html", "SQL", {**data, "is_cut": answer.is_cut}, extra)


def download(request: ViewRequest) -> Page:
    """Give the rows of a query as a file."""
    answer, output = _rows(request, ROWS_IN_A_FILE), BytesIO()
    name = request.parts["format"]
    columns = [_column([row[at] for row in answer.rows]) for at in range(len(answer.columns))]
    if name == "csv":
        plain = [_texts(column) if pa.types.is_nested(column.type) else column for column in columns]
        pa_csv.write_csv(pa.table(plain, names=list(answer.columns)), output)
    else:
        pq.write_table(pa.table(columns, names=list(answer.columns)), output)
    headers = {"Content-Disposition": f'attachment; filename="cortex.{name}"'}
    response = Response(output.getvalue(), media_type=MEDIA_TYPES[name], headers=headers)
    return Page("sql.html", "SQL", {"rows": len(answer.rows)}, {"download": response})


def _rows(request: ViewRequest, most: int) -> QueryResult:
    limits = QueryLimits(most, SECONDS, MEMORY_MIB)
    return sql.query_tables(request.context, request.query.get("q", ""), limits=limits)


def _column(values: Sequence[object]) -> Any:
    """Return values as a column of their type; as text where they have none in common."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _texts(values)


def _texts(values: Iterable[object]) -> Any:
    plain = (value.as_py() if isinstance(value, pa.Scalar) else value for value in values)
    return pa.array([None if value is None else str(value) for value in plain], pa.string())


def _are_numbers(rows: Sequence[Sequence[object]], at: int) -> bool:
    values = [row[at] for row in rows if row[at] is not None]
    return bool(values) and all(
        isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values
    )


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= CELL_CHARS_SHOWN else f"{text[:CELL_CHARS_SHOWN]}…"
