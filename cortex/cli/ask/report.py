"""The command `report`: what a month of work came to, as Markdown or as a page with plots."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ALL_PROJECTS, PROJECT_OPTION
from cortex.transforms.errors import install_extra

if TYPE_CHECKING:
    from cortex.flows.context.context import Context

NO_PLOTS = f"Without plots: they need Altair, 96 MB. {install_extra('report')}."


@command("report", "Report on a month: decisions, corrections, open points.", place=170)
@PROJECT_OPTION
@ALL_PROJECTS
@click.option("--month", metavar="YYYY-MM", help="Month to report on. Default: the last one with a session.")
@click.option("--html", "as_page", is_flag=True, help="Print an HTML page with plots instead of Markdown.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report to FILE instead of printing it.",
)
def report(
    context: Context,
    project: str | None,
    all_projects: bool,
    month: str | None,
    as_page: bool,
    output: Path | None,
) -> Answer:
    """Report on a month: decisions, corrections, repeated instructions and open points."""
    from cortex.flows.operations.care import report
    from cortex.transforms.views.report import report_html, report_markdown

    values = report.month_report(context, month, project, all_projects=all_projects)
    plots = report.plots_of(values) if as_page else []
    text = report_html(values, plots or ()) if as_page else report_markdown(values)
    hints = [NO_PLOTS] if plots is None else []
    if output is not None:
        report.write_report(output, text)
        return Answer({**asdict(values), "file": str(output)}, [f"Written: {output}"], hints)
    return Answer(asdict(values), [text.removesuffix("\n")], hints)
