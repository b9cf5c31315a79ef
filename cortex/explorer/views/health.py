"""The store itself: its health, its runs, what a language model has cost, its settings, its tables by SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from starlette.responses import Response

from cortex.explorer.actions import is_set_here, written
from cortex.explorer.drawing import WIDE, ChartBar, ChartPoint, bar_chart, line_chart, nice_top
from cortex.explorer.page import PAGE_ROWS, Page, ViewRequest, pager
from cortex.flows.operations.ask import listing, sql
from cortex.flows.operations.ask.sql import QueryLimits, QueryResult
from cortex.flows.operations.maintain import config, cost, doctor, status
from cortex.flows.operations.maintain import status as status_operation
from cortex.flows.operations.maintain.config import Setting
from cortex.flows.operations.maintain.status import Status
from cortex.storage.published.published import VIEW_MEANINGS
from cortex.transforms.errors import CortexError, NotFound

# -- Whether all is well: how much of Cortex is at work, a check of each thing it rests on, what waits.


def show_health(request: ViewRequest) -> Page:
    """Show the tier, the checks, and the state of the store."""
    context = request.context
    # A page that is merely looked at sends nothing and costs nothing.
    examination = doctor.examine(context.home, lambda: context, asks_models=False)
    status = _status(request)
    background = status.background if status else None
    data = {
        "is_sound": examination.is_sound,
        "tier": examination.tier,
        "checks": examination.checks,
        "status": {**asdict(status), "background": asdict(status.background)} if status else None,
    }
    extra = {"store": status, "outcome": background.outcome if background and background.started_at else ""}
    return Page("health.html", "Health", data, extra)


def _status(request: ViewRequest) -> Status | None:
    """Return the state of the store; None if it cannot be read, which the checks say more about."""
    try:
        return status_operation.read_status(request.context)
    except CortexError:
        return None


# -- The runs: what each stage took in and gave out, its seconds, what was set aside, how the store grew.


def show_runs(request: ViewRequest) -> Page:
    """Show the last runs, the newest first, and how the store grew."""
    reports = [{"name": name, **report} for name, report in status.list_reports(request.context).items()]
    offset = (request.number("page", 1) - 1) * PAGE_ROWS
    shown = reports[offset : offset + PAGE_ROWS]
    growth = [(_instant(report), _memories(report)) for report in reversed(reports) if report.get("rows")]
    data = {"total": len(reports), "runs": shown}
    top = nice_top(max((count for _, count in growth), default=0))
    points = [ChartPoint(at, count) for at, count in growth]
    extra = {
        "chart": line_chart(points, "Memories after each run", top=top, width=WIDE) if top else "",
        "growth": growth[-PAGE_ROWS:],
        "pager": pager(request, len(reports), len(shown)),
    }
    return Page("runs.html", "Runs", data, extra)


def show_run(request: ViewRequest) -> Page:
    """Show one run by its name."""
    name = request.parts["run"]
    report = status.list_reports(request.context).get(name)
    if report is None:
        raise NotFound(f"no report is called '{name}'.", "The last 100 runs are kept; see Runs.")
    return Page("run.html", f"Run: {report['flow']}", {"name": name, "run": report})


def _instant(report: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(report["started_at"])


def _memories(report: dict[str, Any]) -> int:
    return int(report["rows"].get("memories", 0))


# -- What a language model has cost, by day, purpose, model and project, and what is left of today's budget.

DAYS_SHOWN = 60


def show_costs(request: ViewRequest) -> Page:
    """Show the ledger in sums."""
    report = cost.read_cost(request.context)
    days = report.by_day[-DAYS_SHOWN:]
    data = {**asdict(report), "today": {**asdict(report.today), "left_usd": report.today.left_usd}}
    bars = [ChartBar(row.name, row.usd, short=row.name[5:]) for row in days]
    groups = (
        ("By purpose", report.by_purpose),
        ("By model", report.by_model),
        ("By project", report.by_project),
        ("By day", tuple(reversed(days))),
    )
    writer = request.context.settings.models.writer
    extra = {"chart": bar_chart(bars, "US dollars by day"), "groups": groups, "writer": writer}
    return Page("costs.html", "Costs", data, extra)


# -- The settings: each with its value, where it is from and what it means; a form to change it.


def show_settings(request: ViewRequest) -> Page:
    """Show every setting for all projects, or those of the project in the query; never a secret's value."""
    context, project = request.context, request.word("project") or None
    labels = listing.labels_of(context)
    projects = listing.list_known_projects(context)
    if project and project not in {row["project_id"] for row in projects}:
        raise NotFound(f"no project has the id '{project}'.", "The list on this page has them all.")
    everywhere = replace(context, folder=Path("/"))
    settings = config.list_settings(context.home, project, lambda: everywhere)
    sections: dict[str, list[dict[str, object]]] = {}
    for setting in settings:
        if setting.key.per_project or not project:
            section = setting.key.name.partition(".")[0]
            sections.setdefault(section, []).append(_as_dict(setting, project))
    data = {"project": project, "settings": [row for rows in sections.values() for row in rows]}
    extra = {"sections": sections, "projects": projects, "label": labels.get(project or "", "")}
    return Page("settings.html", "Settings", data, extra)


def _as_dict(setting: Setting, project: str | None) -> dict[str, object]:
    key, value = setting.key, setting.chosen.value
    return {
        "key": key.name,
        "value": written(setting),
        "source": setting.chosen.source,
        "is_default": setting.chosen.is_default,
        "is_secret": key.is_secret,
        "unit": key.unit,
        "meaning": key.meaning,
        "wanted": key.wanted,
        "words": list(key.words) if isinstance(key.default, str) and not key.endings else [],
        "is_switch": isinstance(value, bool),
        "variable": key.variable,
        "is_in_file": is_set_here(setting, project),
    }


# -- SQL over the store, read-only and with limits, and its rows as files.

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
