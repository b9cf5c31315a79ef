"""The commands that account in figures: `status`, `stats`, `audit`, `cost` and `plan`."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cortex.cli.answer import LIMIT, PROJECT_OPTION, Answer, Listing, command, size_of, sparkline
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cortex.flows.context import Context
    from cortex.flows.operations.maintain.cost import CostReport, CostRow, PlannedStage, WritingPlan
    from cortex.flows.operations.maintain.report import ProjectStats
    from cortex.flows.operations.maintain.status import ProjectCounts, Status, WritingProgress
    from cortex.storage.model_failure import ModelFailure
    from cortex.storage.published.reports import RunProgress
    from cortex.transforms.schemas import Row


@command("status", "Show what is stored, what is waiting and how the last run went.", place=100)
def status(context: Context) -> Answer:
    """Show what is stored, what is waiting and how the last run went."""
    from cortex.flows.operations.maintain import status

    state = status.read_status(context)
    return Answer(_as_dict(state), list(_lines(state)))


def _lines(state: Status) -> Iterator[str | Listing]:
    yield f"Store {state.home}, {size_of(state.bytes)}; {counted(state.waiting, 'transcript')} waiting."
    if state.outdated:
        projects = counted(len(state.outdated), "project")
        yield f"Read with another extractor or policy: {projects}. See: cortex rederive"
    if loss := state.pending_loss:
        yield (
            f"The last run would have hidden {loss['lost']} of {loss['shown']} {loss['what']}, so it "
            f"published nothing; {loss['why']}. See: cortex rederive. "
            "Undo the change, or accept it: cortex run --accept-loss"
        )
    if run := state.last_run:
        began_at = datetime.fromisoformat(str(run["started_at"])).astimezone(UTC)
        yield f"Last run: {run['flow']}, {began_at:%Y-%m-%d %H:%M} UTC, took {run['seconds']:.0f} s."
    if failure := state.embedding_failure:
        failed_at = f"{failure.failed_at:%Y-%m-%d %H:%M} UTC"
        yield f"{failure.model} has not answered since {failed_at}: {failure.reason}"
        yield "Words alone answer meanwhile; a later run tries again."
    if failure := state.writer_failure:
        failed_at = f"{failure.failed_at:%Y-%m-%d %H:%M} UTC"
        if failure.until:
            yield f"The language model is asked again when a limit is reset: {failure.reason}"
        else:
            yield f"The language model has not answered since {failed_at}: {failure.reason}"
    yield _writing(state.writing)
    background = state.background
    if background.started_at:
        started_at = f"{background.started_at:%Y-%m-%d %H:%M} UTC"
        yield f"Last background run: {background.outcome}, started {started_at}; log {background.log}"
    yield from (f"Erased by age: {rules}" for rules in state.retention)
    if state.progress:
        yield from _progress_lines(state.progress, state.is_ready)
    if not state.projects:
        if not state.progress and state.waiting:
            yield "Transcripts are waiting, and none has been read yet: cortex run"
        elif not state.progress:
            yield "Nothing has been remembered yet. Start with: cortex setup"
        return
    columns = ["project", "memories", "faded", "sessions", "last worked on"]
    rows = [_row(project) for project in state.projects]
    totals = ["", *(str(sum(int(row[at]) for row in rows)) for at in (1, 2, 3)), ""]
    yield Listing("Projects", columns, rows, numbers=set(columns[1:4]), totals=totals)


def _progress_lines(progress: RunProgress, is_ready: bool) -> Iterator[str]:
    """Yield how far the run at work is, or where one was stopped, and what answers meanwhile."""
    if not progress.is_at_work:
        yield f"The last run ({progress.flow}) was stopped: {progress.words}. Continue: cortex run"
        return
    yield f"At work: {progress.flow}, {progress.words}."
    if is_ready:
        yield "brief, recall, list and today answer already; recall finds by words what has no vector yet."
    else:
        yield "brief, list and today answer when the transcripts are read."


def _writing(writing: WritingProgress) -> str:
    """Return in a line who writes the memories, and how far a language model has come."""
    if writing.writer == "rules":
        return "Written by rules alone."
    who = f"{writing.model} ({writing.writer})"
    left = writing.sessions - writing.read
    rest = f"; the other {left}, the newest first, in the background and at night" if left else ""
    return f"Written by {who}: {writing.read} of {counted(writing.sessions, 'session')} read{rest}."


def _row(project: ProjectCounts) -> list[str]:
    at = project.last_worked_at
    counts = (project.memories, project.faded, project.sessions)
    return [project.name, *map(str, counts), f"{at:%Y-%m-%d}" if at else ""]


def _as_dict(state: Status) -> dict[str, object]:
    return {
        "home": str(state.home),
        "bytes": state.bytes,
        "waiting": state.waiting,
        "outdated": state.outdated,
        "pending_loss": state.pending_loss,
        "projects": [asdict(project) for project in state.projects],
        "last_run": state.last_run,
        "background": {**asdict(state.background), "outcome": state.background.outcome},
        "embedding": _failure_as_dict(state.embedding_failure),
        "writer": _failure_as_dict(state.writer_failure),
        "writing": asdict(state.writing),
        "progress": {**asdict(state.progress), "seconds_left": round(state.progress.seconds_left)}
        if state.progress
        else None,
        "is_ready": state.is_ready,
        "retention": state.retention,
    }


def _failure_as_dict(failure: ModelFailure | None) -> dict[str, object] | None:
    if failure is None:
        return None
    since = failure.failed_at.isoformat()
    return {"model": failure.model, "failing_since": since, "reason": failure.reason}


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

COLUMNS_OF_PROJECTS = "fixes: your corrections; chose: decisions; again: made or rejected before."
COLUMNS_OF_SESSIONS = (
    "to edit: minutes until the first change of a file; reread: files read again; fixes: your corrections; "
    "chose: decisions; twice: decisions made before; again: proposals of what was rejected before."
)
TREND_SESSIONS = 8
MAX_STDIN_BYTES = 1024 * 1024
TREND = "Trend: corrections by prompt,"


@command("stats", "Show statistics by session and project.", place=130)
@PROJECT_OPTION
@click.option("--stdin", "is_piped", is_flag=True, help="Read the project from a status line's JSON.")
def stats(context: Context, project: str | None, is_piped: bool) -> Answer:
    """Show statistics by session, or the totals of each project.

    \b
    to edit  minutes until the first file change (median over several sessions)
    reread   files read again
    fixes    corrections: refused calls with a comment, and complaints
    chose    decisions
    twice    decisions that an earlier session had already made
    again    proposals of what an earlier session rejected; by project both
    """
    from cortex.flows.operations.maintain import report as stats

    if is_piped:
        context = replace(context, folder=_folder_on_stdin())
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
        trend = f"{TREND} the last {TREND_SESSIONS} sessions: {_trend(figures[0]).strip() or 'none'}"
        return Answer(
            {"projects": data},
            [_sessions(figures[0])],
            [*_plans(figures[0].sessions), trend, COLUMNS_OF_SESSIONS],
        )
    hints = [
        f"{TREND} the last {TREND_SESSIONS} sessions.",
        COLUMNS_OF_PROJECTS,
        "One project by session: cortex stats --project NAME",
    ]
    return Answer({"projects": data}, [_projects(figures)], hints)


def _folder_on_stdin() -> Path:
    """Return the folder that the JSON on standard input names. Raises UsageError if it names none."""
    import json

    from cortex.hooks.statusline import folders_named_in
    from cortex.transforms.errors import UsageError

    try:
        folders = folders_named_in(json.loads(sys.stdin.buffer.read(MAX_STDIN_BYTES)))
    except (ValueError, AttributeError):
        folders = []
    if not folders:
        problem = "standard input is not the JSON of a status line: it names no folder."
        raise UsageError(problem, "Give an object with `cwd`, or --project NAME instead.")
    return Path(folders[0])


def _sessions(stats: ProjectStats) -> Listing:
    title = f"{stats.label}: {counted(len(stats.sessions), 'session')}, brief of {stats.brief_tokens} tokens"
    rows = [_stats_row(session) for session in stats.sessions]
    totals = ["", "", *_totals(stats.sessions)]
    return Listing(title, ["id", "day", *HEADINGS], rows, numbers=set(HEADINGS), totals=totals)


def _plans(sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line about plans over several sessions, if steps got lost or were done again."""
    gaps, repeats = (sum(session[name] for session in sessions) for name in ("plan_gaps", "plan_repeats"))
    if not gaps and not repeats:
        return []
    return [f"Plans carried on in a later session: {counted(gaps, 'step')} left out, {repeats} done again."]


def _stats_row(session: Mapping[str, Any]) -> list[str]:
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
    from cortex.flows.operations.maintain import audit

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


COST_HEADINGS = ("requests", "tokens in", "tokens out", "$")
# The last days that the plot shows, and how long its longest bar is.
PLOT_DAYS = 30
PLOT_CHARS = 40


@command("cost", "Show language model costs.", place=160)
def cost(context: Context) -> Answer:
    """Show language model costs by day, purpose, model and project."""
    from cortex.flows.operations.maintain import cost

    report = cost.read_cost(context)
    today = report.today
    left = (
        f"Today: ${today.spent_usd:.4f} of ${today.daily_usd:g} and {today.requests} of "
        f"{today.daily_requests} requests."
    )
    data = {**asdict(report), "today": {**asdict(today), "left_usd": today.left_usd}}
    if not report.total.requests:
        return Answer(data, [f"No language model has been asked anything yet. {left}"])
    return Answer(data, [*_cost_lines(report), left])


def _cost_lines(report: CostReport) -> list[str | Listing]:
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


PLAN_HEADINGS = ("sessions", "requests", "tokens in", "tokens out", "$", "$ in batches", "minutes")


@command("plan", "Show pending language model requests and their price.", place=140)
def plan(context: Context) -> Answer:
    """Show the next language model requests: sessions, requests, tokens, dollars, minutes."""
    from cortex.flows.operations.maintain import cost as plan

    planned = plan.read_plan(context)
    table = Listing(
        f"To ask {planned.model}, about",
        ["stage", *PLAN_HEADINGS],
        [_plan_row(stage) for stage in planned.stages],
        numbers=set(PLAN_HEADINGS),
    )
    return Answer(asdict(planned), [table, _within(planned)], _hints(planned))


def _plan_row(stage: PlannedStage) -> list[str]:
    return [
        stage.stage,
        f"{stage.sessions:,}",
        f"{stage.requests:,}",
        f"{stage.input_tokens:,}",
        f"{stage.output_tokens:,}",
        f"{stage.usd:.4f}",
        f"{stage.batch_usd:.4f}",
        f"{stage.minutes:,}",
    ]


def _within(planned: WritingPlan) -> str:
    today = planned.today
    left = f"${today.left_usd:.4f} of ${today.daily_usd:g} and {today.left_requests} requests are left today"
    return f"{left}; in batches all of it takes {counted(planned.days, 'day')} of the budget."


def _hints(planned: WritingPlan) -> list[str]:
    if planned.writer != "none":
        return []
    return ["No language model is chosen, so nothing is asked. See: cortex config set models.writer"]
