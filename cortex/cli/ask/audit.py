"""The command `audit`: what programs did through the tools of the MCP server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import LIMIT
from cortex.cli.terminal import Listing
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.transforms.schemas import Row

_DAY = ["%Y-%m-%d"]
_COLUMNS = ("when", "caller", "tool", "arguments", "outcome", "seconds", "usd")


@command("audit", "Show the log of calls to the MCP server.", place=150)
@click.option("--tool", metavar="NAME", help="Only calls of this tool.")
@click.option("--failed", is_flag=True, help="Only refused and failed calls.")
@click.option("--days", type=click.IntRange(1), metavar="COUNT", help="Only the last COUNT days.")
@click.option("--since", type=click.DateTime(_DAY), help="Only this day (UTC) and later.")
@click.option("--until", type=click.DateTime(_DAY), help="Only this day (UTC) and earlier.")
@click.option(
    "--export",
    "file",
    type=click.Path(path_type=Path),
    help="Write all matching calls to a .csv, .jsonl or .parquet file.",
)
@LIMIT
def audit(
    context: Context,
    tool: str | None,
    failed: bool,
    days: int | None,
    since: datetime | None,
    until: datetime | None,
    file: Path | None,
    limit: int,
) -> Answer:
    """Show the log of calls to the MCP server: caller, tool, outcome, duration, cost.

    The log holds no text of a call; of a question it holds only the length.
    """
    from cortex.flows.operations.care import audit

    begin = since.replace(tzinfo=UTC) if since else None
    end = until.replace(tzinfo=UTC) + timedelta(days=1) if until else None
    rows = audit.read_calls(context, tool=tool, failed=failed, days=days, since=begin, until=end)
    if file is not None:
        count = audit.export_calls(rows, file.expanduser())
        return Answer(
            {"exported": count, "file": str(file)}, [f"{counted(count, 'call')} written to {file}."]
        )
    shown = rows[:limit]
    data = {
        "total": len(rows),
        "calls": [{**row, "called_at": row["called_at"].isoformat()} for row in shown],
    }
    if not rows:
        is_chosen = tool or failed or days or since or until
        hint = "No call is among these." if is_chosen else "No program has called a tool yet: cortex mcp"
        return Answer(data, hints=[hint])
    title = f"{len(shown)} of {counted(len(rows), 'call')}, the newest first"
    return Answer(data, [Listing(title, _COLUMNS, [_cells(row) for row in shown])])


def _cells(row: Row) -> list[str]:
    usd = f"{row['usd']:.4f}" if row["usd"] else ""
    return [
        f"{row['called_at']:%Y-%m-%d %H:%M:%S}",
        row["caller"],
        row["tool"],
        row["arguments"],
        row["outcome"],
        f"{row['seconds']:.2f}",
        usd,
    ]
