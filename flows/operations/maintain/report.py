"""What a month of work came to, as Markdown or HTML with plots; and how its sessions went, in figures."""

import calendar
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.flows.context import Context
from cortex.flows.operations.ask.listing import projects_meant
from cortex.flows.operations.ask.sql import query_tables
from cortex.flows.operations.lookup import projects_of
from cortex.hooks.context_use import USUAL_WINDOW_TOKENS
from cortex.hooks.prose.plain import on_one_line
from cortex.hooks.tokens import tokens_in
from cortex.storage.filesystem.files import write_atomically
from cortex.storage.lake.lake import each_key_once
from cortex.storage.projects.projects import Project
from cortex.storage.published.catalogue import GLOBAL_LABEL, Catalogue
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.memory.merged_projects import in_project
from cortex.transforms.schemas import CALLS, EPOCH, EVENTS, GLOBAL_SCOPE, TURNS, Row, Table
from cortex.transforms.views import effect
from cortex.transforms.views.metrics import session_metrics
from cortex.transforms.words.ages import counted

# -- The report of a month as Markdown or HTML: decisions, corrections, what was repeated, what is open.

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


# -- What a month of work came to: values for a report, and its plots where the libraries for them are
# there.

MONTHS_OF_TREND = 12

_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_CORRECTIONS = (
    "select project_id, said_at, text from turns where kind = 'rejection' and agent_id is null "
    "and strftime(said_at, '%Y-%m') = '{month}' order by said_at desc, turn_id"
)


def month_report(
    context: Context, month: str | None = None, project: str | None = None, *, all_projects: bool = False
) -> MonthReport:
    """
    Return what `month` (YYYY-MM; default: the last one with a session) came to in the projects asked about.

    Raises UsageError for what is not a month, NotFound if no session has a date.
    """
    if month is not None and not _MONTH.fullmatch(month):
        raise UsageError(f"Not a month: '{month}'.", "Use YYYY-MM: --month 2026-09")
    catalogue = Catalogue(context.home)
    projects = catalogue.projects()
    ids = projects_meant(context, catalogue, projects, project, all_projects)
    labels = {row["project_id"]: row["label"] for row in projects} | {GLOBAL_SCOPE: GLOBAL_LABEL}
    metrics = [row for row in catalogue.read("metrics") if row["began_at"] and _is_of(row, ids)]
    month = month or max((_month_of(row["began_at"]) for row in metrics), default=None)
    if month is None:
        raise NotFound(
            "no session of these projects has a date.", "Ask for all: cortex report --all-projects"
        )
    own = [row for row in metrics if _month_of(row["began_at"]) == month]
    names = labels if len(ids) != 1 else {}
    return MonthReport(
        month,
        _title(month, [labels.get(each, each) for each in ids]),
        len(own),
        sum(row["prompts"] for row in own),
        sum(row["corrections"] for row in own),
        _prompts_by_day(own),
        _trend(metrics, month),
        _sections(context, catalogue, month, ids, names),
    )


def plots_of(report: MonthReport) -> list[str] | None:
    """Return the plots as SVG elements; None if the libraries of the extra `report` are missing."""
    try:
        import altair
        import vl_convert  # noqa: F401 - renders what Altair describes
    except ModuleNotFoundError:
        return None
    days = [{"day": day, "prompts": count} for day, count in report.days.items()]
    shares = [{"month": month, "corrections": share} for month, share in report.trend.items()]
    charts = [
        altair.Chart(altair.InlineData(days), title="Prompts by day")
        .mark_bar()
        .encode(x=altair.X("day:O", title=None), y=altair.Y("prompts:Q", title=None)),
        altair.Chart(altair.InlineData(shares), title="Corrections by prompt")
        .mark_line(point=True)
        .encode(x=altair.X("month:O", title=None), y=altair.Y("corrections:Q", title=None)),
    ]
    return [_svg(chart.properties(width=600, height=140)) for chart in charts]


def _svg(chart: "object") -> str:
    image = StringIO()
    chart.save(image, format="svg")  # type: ignore[attr-defined]
    return image.getvalue()


def write_report(path: Path, text: str) -> None:
    """Write a report to `path`, whole or not at all. Raises UsageError if that is refused."""
    try:
        write_atomically(path.absolute(), text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}).", "Name another file.") from error


def _sections(
    context: Context, catalogue: Catalogue, month: str, ids: Sequence[str], names: Mapping[str, str]
) -> dict[str, list[ReportLine]]:
    scopes = [*ids, GLOBAL_SCOPE] if ids else []
    every = catalogue.read("memories", order="project_id, memory_id")
    memories = [row for row in every if _is_of(row, scopes)]
    active = [row for row in memories if row["status"] == "active"]
    new = [row for row in active if _month_of(row["created_at"]) == month]
    newest = sorted(new, key=lambda row: (row["created_at"], row["memory_id"]), reverse=True)
    again = [row for row in active if row["session_count"] > 1 and _month_of(row["updated_at"]) == month]
    again.sort(key=lambda row: (-row["session_count"], row["memory_id"]))
    sessions = [row for row in catalogue.read("sessions") if _is_of(row, ids) and row["ended_at"]]
    left = [row for row in sessions if row["still_open"] and _month_of(row["ended_at"]) == month]
    left.sort(key=lambda row: (row["ended_at"], row["session_id"]), reverse=True)

    def of_type(memory_type: str) -> list[ReportLine]:
        rows = [row for row in newest if row["memory_type"] == memory_type]
        return [_item(row, "created_at", "text", names) for row in rows]

    return {
        "Decisions": of_type("decision"),
        "Gotchas": of_type("gotcha"),
        "Corrections": _corrections(context, month, ids, names),
        "Said again and again": [
            ReportLine(f"{row['session_count']} sessions", names.get(row["project_id"], ""), row["text"])
            for row in again
        ],
        "Left open": [_item(row, "ended_at", "still_open", names) for row in left],
    }


def _corrections(
    context: Context, month: str, ids: Sequence[str], names: Mapping[str, str]
) -> list[ReportLine]:
    result = query_tables(context, _CORRECTIONS.format(month=month))
    rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    return [_item(row, "said_at", "text", names) for row in rows if _is_of(row, ids)]


def _item(row: Row, instant: str, text: str, names: Mapping[str, str]) -> ReportLine:
    return ReportLine(f"{row[instant]:%Y-%m-%d}", names.get(row["project_id"], ""), row[text])


def _is_of(row: Row, ids: Sequence[str]) -> bool:
    return not ids or row["project_id"] in ids


def _month_of(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m}"


def _prompts_by_day(rows: Sequence[Row]) -> dict[str, int]:
    days: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row["began_at"]):
        day = f"{row['began_at']:%Y-%m-%d}"
        days[day] = days.get(day, 0) + row["prompts"]
    return days


def _trend(rows: Sequence[Row], month: str) -> dict[str, float]:
    """Return corrections by prompt of the last months with prompts, up to `month`."""
    sums: dict[str, tuple[int, int]] = {}
    for row in rows:
        corrections, prompts = sums.get(_month_of(row["began_at"]), (0, 0))
        sums[_month_of(row["began_at"])] = corrections + row["corrections"], prompts + row["prompts"]
    known = sorted(name for name, (_, prompts) in sums.items() if prompts and name <= month)
    return {name: sums[name][0] / sums[name][1] for name in known[-MONTHS_OF_TREND:]}


def _title(month: str, labels: Sequence[str]) -> str:
    year, number = month.split("-")
    return f"{', '.join(labels) or 'All projects'}, {calendar.month_name[int(number)]} {year}"


@dataclass(frozen=True)
class ProjectStats:
    """A project's sessions as rows of METRICS, the oldest first, and its published brief's size in tokens."""

    project: Project
    label: str
    brief_tokens: int
    sessions: Sequence[Mapping[str, Any]]


def read_stats(context: Context, project: str | None = None) -> list[ProjectStats]:
    """Return the figures of the named projects, or of the folder's, or of all where the folder is none."""
    store, policy = context.open_store(), context.policy
    labels, stats = store.projects.labels(), []
    for each in projects_of(context, store, project):
        turns = each_key_once(TURNS, store.lake.read(TURNS, each.project_id))
        sessions = session_metrics(turns, store.lake.read(EVENTS, each.project_id), policy)
        tokens = tokens_in(store.published.brief(each.project_id))
        rows = sorted(sessions.to_pylist(), key=lambda row: (row["began_at"] or EPOCH, row["session_id"]))
        stats.append(ProjectStats(each, labels[each.project_id], tokens, rows))
    return stats


@dataclass(frozen=True)
class EffectReport:
    """
    What changed with memory in the projects asked about.

    `labels` are the projects by id. `comparisons` are those of COMPARED_SIDES, each by project and last
    over all of them (with an empty id). `across` counts sessions that were under way when their project's
    first brief came, which stand on no side. `window_share` is the mean share of a usual context window that
    what was shown took, with its 99 % interval, in the `window_sessions` that noted it; None of too few.
    """

    labels: Mapping[str, str]
    comparisons: Mapping[str, Sequence[effect.EffectComparison]]
    across: int
    window_sessions: int
    window_share: tuple[float, float, float] | None


def read_effect(context: Context, project: str | None = None, *, all_projects: bool = False) -> EffectReport:
    """
    Return what changed with memory in the project called `project`, else the folder's, else in all.

    Raises UnknownProject; UsageError for a name and `all_projects`.
    """
    if all_projects and project:
        raise UsageError("--project and --all-projects cannot be combined.", "Give one of them.")
    store, policy = context.open_store(), context.policy
    meant = projects_of(replace(context, folder=Path("/")) if all_projects else context, store, project)
    sessions: list[Row] = []
    for project_id in (each.project_id for each in meant):
        turns, events, calls = (_rows_of(store, table, project_id) for table in (TURNS, EVENTS, CALLS))
        metrics = session_metrics(turns, events, policy)
        sessions += effect.session_effects(turns, metrics, calls, policy).to_pylist()
    labels, tokens = store.projects.labels(), [row["shown_tokens"] for row in sessions]
    shares = [count / USUAL_WINDOW_TOKENS for count in tokens if count is not None]
    return EffectReport(
        {each.project_id: labels[each.project_id] for each in meant},
        {name: effect.compared(sessions, name) for name in effect.COMPARED_SIDES},
        sum(row["side"] == "across" for row in sessions),
        len(shares),
        effect.interval(shares) if len(shares) >= effect.MIN_SESSIONS else None,
    )


def _rows_of(store: Store, table: Table, project_id: str) -> pa.Table:
    """Return the rows of a project in the lake, also those of what was merged into it, each once."""
    parts = [store.lake.read(table, part) for part in store.projects.parts_of(project_id)]
    return in_project(each_key_once(table, pa.concat_tables([table.empty(), *parts])), project_id)
