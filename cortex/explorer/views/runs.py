"""The runs: what each stage took in and gave out, its seconds, what was set aside, how the store grew."""

from datetime import datetime
from typing import Any

from cortex.explorer.charts import WIDE, ChartPoint, line_chart, nice_top
from cortex.explorer.page import PAGE_ROWS, Page, ViewRequest, pager
from cortex.flows.operations.care import status
from cortex.transforms.errors import NotFound


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
