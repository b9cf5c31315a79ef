"""What a language model has cost, by day, purpose, model and project, and what is left of today's budget."""

from dataclasses import asdict

from cortex.explorer.charts import ChartBar, bar_chart
from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.care import cost

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
