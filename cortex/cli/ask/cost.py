"""The command `cost`: what a language model has cost, in tables and a plot."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import Listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.cost import CostReport, CostRow

COST_HEADINGS = ("requests", "tokens in", "tokens out", "$")
# The last days that the plot shows, and how long its longest bar is.
PLOT_DAYS = 30
PLOT_CHARS = 40


@command("cost", "Show language model costs.", place=160)
def cost(context: Context) -> Answer:
    """Show language model costs by day, purpose, model and project."""
    from cortex.flows.operations.care import cost

    report = cost.read_cost(context)
    today = report.today
    left = (
        f"Today: ${today.spent_usd:.4f} of ${today.daily_usd:g} and {today.requests} of "
        f"{today.daily_requests} requests."
    )
    data = {**asdict(report), "today": {**asdict(today), "left_usd": today.left_usd}}
    if not report.total.requests:
        return Answer(data, [f"No language model has been asked anything yet. {left}"])
    return Answer(data, [*_lines(report), left])


def _lines(report: CostReport) -> list[str | Listing]:
    total = report.total
    summary = f"${total.usd:.4f} for {total.requests} requests"
    if report.reserved_usd:
        summary += (
            f"; ${report.reserved_usd:.4f} of it reserved for answers that are pending or never arrived"
        )
    if report.usd_per_fact is not None:
        summary += f"; {report.facts} facts kept, ${report.usd_per_fact:.5f} each"
    tables = [
        _table("By purpose", report.by_purpose),
        _table("By model", report.by_model),
        _table("By project", report.by_project),
    ]
    return [f"{summary}.\n", *_plot(report.by_day[-PLOT_DAYS:]), "", *tables]


def _plot(days: Sequence[CostRow]) -> list[str]:
    """Return a bar a day, the dearest as long as PLOT_CHARS."""
    most = max((row.usd for row in days), default=0.0) or 1.0
    return [f"{row.name}  ${row.usd:7.4f}  {'█' * round(row.usd / most * PLOT_CHARS)}" for row in days]


def _table(title: str, rows: Sequence[CostRow]) -> Listing:
    cells = [
        [row.name, f"{row.requests:,}", f"{row.input_tokens:,}", f"{row.output_tokens:,}", f"{row.usd:.4f}"]
        for row in rows
    ]
    return Listing(title, ["", *COST_HEADINGS], cells, numbers=set(COST_HEADINGS))
