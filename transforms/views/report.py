"""The report of a month as Markdown or HTML: decisions, corrections, what was repeated, what is open."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.words.ages import counted

# A list of more is not read; the query that gives all of them is in docs/analysis.md.
ITEMS_SHOWN = 30


@dataclass(frozen=True)
class ReportLine:
    """One line of a section: its day, its project (empty if all are of one), and what it says."""

    day: str
    project: str
    text: str


@dataclass(frozen=True)
class MonthReport:
    """
    What a month of work came to.

    `month` is YYYY-MM, `days` counts prompts by day (YYYY-MM-DD), `trend` gives corrections by prompt of the
    months up to this one. `sections` are items by heading, in the order shown, the newest item first.
    """

    month: str
    title: str
    sessions: int
    prompts: int
    corrections: int
    days: Mapping[str, int]
    trend: Mapping[str, float]
    sections: Mapping[str, Sequence[ReportLine]]


def report_markdown(report: MonthReport) -> str:
    """Return the report as Markdown; no text of a session can become a link, an image or a tag in it."""
    parts = [f"# {_markdown(report.title)}", _summary(report)]
    if report.trend:
        rows = [
            f"| {month} | {share:.2f} | {bar(share, report.trend)} |" for month, share in report.trend.items()
        ]
        table = ["| month | corrections by prompt | |", "|---|---:|---|", *rows]
        parts += ["## Trend", "\n".join(table)]
    for heading, items in report.sections.items():
        parts += [f"## {heading}", "\n".join(_markdown_item(item) for item in items[:ITEMS_SHOWN]) or "None."]
        if len(items) > ITEMS_SHOWN:
            parts.append(f"And {len(items) - ITEMS_SHOWN} more.")
    return "\n\n".join(parts) + "\n"


def report_html(report: MonthReport, plots: Sequence[str] = ()) -> str:
    """Return the report as one HTML page without scripts; `plots` are SVG elements, shown as they are."""
    parts = [f"<h1>{html.escape(report.title)}</h1>", f"<p>{html.escape(_summary(report))}</p>", *plots]
    for heading, items in report.sections.items():
        shown = "\n".join(_html_item(item) for item in items[:ITEMS_SHOWN])
        parts += [f"<h2>{html.escape(heading)}</h2>", f"<ul>\n{shown}\n</ul>" if items else "<p>None.</p>"]
        if len(items) > ITEMS_SHOWN:
            parts.append(f"<p>And {len(items) - ITEMS_SHOWN} more.</p>")
    return _PAGE.format(title=html.escape(report.title), body="\n".join(parts))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
time, .project {{ color: #666; font-size: .85em; }}
li {{ margin: .4em 0; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def bar(share: float, shares: Mapping[str, float], width: int = 20) -> str:
    """
    Return a bar as long as a share is of the largest one.

    >>> bar(1, {"a": 1, "b": 2}, width=4)
    '██'
    """
    top = max(shares.values(), default=0)
    return "█" * round(width * share / top) if top > 0 else ""


def _summary(report: MonthReport) -> str:
    worked = len(report.days)
    return (
        f"{counted(report.sessions, 'session')} on {counted(worked, 'day')}, "
        f"{counted(report.prompts, 'prompt')}, {counted(report.corrections, 'correction')}."
    )


def _markdown_item(item: ReportLine) -> str:
    place = f", {item.project}" if item.project else ""
    return f"- {_markdown(item.text)} ({_markdown(item.day + place)})"


def _html_item(item: ReportLine) -> str:
    place = f' <span class="project">{html.escape(item.project)}</span>' if item.project else ""
    text = html.escape(on_one_line(item.text))
    return f"<li>{text} <time>{html.escape(item.day)}</time>{place}</li>"


def _markdown(text: str) -> str:
    """Return text on one line in which nothing can be clicked, fetched or run."""
    line = on_one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace("[", "\\[")
    return line.replace("://", ":\u2060//")
