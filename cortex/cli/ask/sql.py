"""The command `sql`: a read-only query on the store's tables."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import AS_OF
from cortex.cli.terminal import Listing

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("sql", "Query turns, events, memories, edges and the journal with DuckDB.", place=180)
@click.argument("query")
@AS_OF
def sql(context: Context, query: str, as_of: str | None) -> Answer:
    """Query turns, events, memories, edges, metrics and the journal with DuckDB (read-only)."""
    from cortex.flows.operations.ask import sql

    result = sql.query_tables(context, query, as_of=as_of)
    count = len(result.rows)
    rows = [[_cell(value) for value in row] for row in result.rows]
    return Answer(
        {"columns": list(result.columns), "rows": [list(row) for row in result.rows]},
        [Listing(f"{count} row{'' if count == 1 else 's'}", result.columns, rows)],
    )


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
