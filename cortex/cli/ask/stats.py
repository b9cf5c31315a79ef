"""The command `stats`: how sessions went, in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.cli.answer import Answer, command
from cortex.cli.options import PROJECT_OPTION
from cortex.cli.terminal import Listing, sparkline
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.stats import ProjectStats

# Heads of METRICS' columns, in their order: short, so that eight fit on a line of 80 characters.
HEADINGS = (
    "prompts", "edits", "to edit", "reread", "fixes", "chose", "twice", "again"
)  # fmt: skip

# Not summed: their total is the median.
MEDIANS = ("minutes_to_first_edit",)

# Heads of the table of projects, and what each sums; the first counts sessions.
SUMMED: dict[str, tuple[str, ...]] = {
    "sess": (),
    "prompts": ("prompts",),
    "edits": ("edits",),
    "fixes": ("corrections",),
    "chose": ("decisions",),
    "again": ("duplicate_decisions", "re_proposals"),
}

TREND_SESSIONS = 8
TREND = "Trend: corrections by prompt,"


@command("stats", "Show statistics by session and project.", place=130)
@PROJECT_OPTION
def stats(context: Context, project: str | None) -> Answer:
    """Show statistics by session, or the totals of each project.

    \b
    to edit  minutes until the first file change (median over several sessions)
    reread   files read again
    fixes    corrections: refused calls with a comment, and complaints
    chose    decisions
    twice    decisions that an earlier session had already made
    again    proposals of what an earlier session rejected; by project both
    """
    from cortex.flows.operations.ask import stats

    figures = stats.read_stats(context, project)
    data = [
        {
            "project_id": each.project.project_id,
            "project": each.project.name,
            "label": each.label,
            "brief_tokens": each.brief_tokens,
            "sessions": each.sessions,
        }
        for each in figures
    ]
    if len(figures) == 1:
        trend = f"{TREND} the last {TREND_SESSIONS} sessions: {_trend(figures[0])}"
        return Answer({"projects": data}, [_sessions(figures[0])], [trend])
    hints = [
        f"{TREND} the last {TREND_SESSIONS} sessions.",
        "One project by session: cortex stats --project NAME",
    ]
    return Answer({"projects": data}, [_projects(figures)], hints)


def _sessions(stats: ProjectStats) -> Listing:
    title = f"{stats.label}: {counted(len(stats.sessions), 'session')}, brief of {stats.brief_tokens} tokens"
    rows = [_row(session) for session in stats.sessions]
    totals = ["", "", *_totals(stats.sessions)]
    return Listing(title, ["id", "day", *HEADINGS], rows, numbers=set(HEADINGS), totals=totals)


def _row(session: Mapping[str, Any]) -> list[str]:
    from cortex.transforms.views.metrics import COLUMNS

    began_at = session["began_at"]
    return [
        str(session["session_id"])[:6],
        f"{began_at:%y-%m-%d}" if began_at else "",
        *("" if session[name] is None else f"{session[name]:.0f}" for name in COLUMNS),
    ]


def _projects(figures: Sequence[ProjectStats]) -> Listing:
    """Return one row a project: sums over its sessions; `again` counts both kinds of repetition."""
    sessions = [session for each in figures for session in each.sessions]
    rows = [[each.label, *_sums(each.sessions), _trend(each)] for each in figures]
    title = f"{counted(len(figures), 'project')}, {counted(len(sessions), 'session')}"
    return Listing(
        title,
        ["project", *SUMMED, "trend"],
        rows,
        numbers=set(SUMMED),
        totals=["", *_sums(sessions), ""],
        wraps="project",
    )


def _sums(sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    sums = [
        sum(session[name] for session in sessions for name in names) for names in SUMMED.values() if names
    ]
    return [str(len(sessions)), *map(str, sums)]


def _totals(sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    from statistics import median

    from cortex.transforms.views.metrics import COLUMNS

    totals = []
    for name in COLUMNS:
        values = [session[name] for session in sessions if session[name] is not None]
        total = (median(values) if values else None) if name in MEDIANS else sum(values)
        totals.append("" if total is None else f"{total:.0f}")
    return totals


def _trend(stats: ProjectStats) -> str:
    last = stats.sessions[-TREND_SESSIONS:]
    return sparkline([session["corrections"] / max(1, session["prompts"]) for session in last])
