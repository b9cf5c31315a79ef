"""The timeline: sessions and decisions as a strip that leads from months to days, and the sessions in it."""

from collections.abc import Sequence

from cortex.explorer.charts import ChartBar, bar_chart
from cortex.explorer.page import PAGE_ROWS, Page, ViewRequest, pager
from cortex.flows.operations.ask import listing
from cortex.flows.operations.ask import timeline as timeline_operation
from cortex.flows.operations.ask.timeline import TimelineStretch


def show_timeline(request: ViewRequest) -> Page:
    """Show the stretch of time and the project in the query, all of both by default."""
    period, project = request.word("in"), request.word("project")
    offset = (request.number("page", 1) - 1) * PAGE_ROWS
    timeline = timeline_operation.read_timeline(
        request.context, project=project, period=period, offset=offset, limit=PAGE_ROWS
    )
    data = {
        "in": period,
        "project": project,
        "total": timeline.total,
        "strip": timeline.strip,
        "sessions": [{**row, "label": timeline.labels.get(row["project_id"])} for row in timeline.sessions],
    }
    extra = {
        "sessions_chart": bar_chart(
            [_bar(request, each, each.sessions) for each in timeline.strip], "Sessions over time"
        ),
        "decisions_chart": bar_chart(
            [_bar(request, each, each.decisions) for each in timeline.strip], "Decisions over time"
        ),
        "strip_rows": [(each, _zoom(request, each)) for each in timeline.strip if each.sessions],
        "trail": _trail(request, period),
        "projects": listing.list_known_projects(request.context),
        "pager": pager(request, timeline.total, len(timeline.sessions)),
        "chosen_project": project,
        "period": period,
    }
    return Page("timeline.html", "Timeline", data, extra)


def _bar(request: ViewRequest, stretch: TimelineStretch, value: int) -> ChartBar:
    short = stretch.period[-2:] if len(stretch.period) == 10 else stretch.period
    return ChartBar(stretch.period, value, _zoom(request, stretch), short)


def _zoom(request: ViewRequest, stretch: TimelineStretch) -> str:
    return request.link(**{"in": stretch.period, "page": ""})


def _trail(request: ViewRequest, period: str) -> Sequence[tuple[str, str]]:
    """Return the stretches around the one that is looked at, from all time on: name and address."""
    parts = [period[:length] for length in (4, 7, 10) if len(period) >= length]
    links = [("All time", request.link(**{"in": "", "page": ""}))]
    return [*links, *((part, request.link(**{"in": part, "page": ""})) for part in parts)]
