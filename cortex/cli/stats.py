"""The command `stats`: how sessions went, in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortex.cli.answer import Answer, command
from cortex.cli.options import PROJECT_OPTION
from cortex.cli.terminal import Listing
from cortex.flows import operations
from cortex.transforms.words.phrases import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cortex.flows.context import Context
    from cortex.flows.operations.stats import ProjectStats

# Heads of METRICS' columns, in their order: short, so that eight fit on a line of 80 characters.
HEADINGS = (
    "prompts", "edits", "to edit", "reread", "fixes", "chose", "twice", "again"
)  # fmt: skip


@command("stats")
@PROJECT_OPTION
def stats(context: Context, project: str | None) -> Answer:
    """Show figures by session: decisions made twice, rejected ones proposed again, files read again."""
    figures = operations.stats.read_stats(context, project)
    names = [each.project.name for each in figures]
    data = [
        {
            "project_id": each.project.project_id,
            "project": each.project.name,
            "brief_tokens": each.brief_tokens,
            "sessions": each.sessions,
        }
        for each in figures
    ]
    return Answer(
        {"projects": data},
        [_table(each, is_unique=names.count(each.project.name) == 1) for each in figures],
    )


def _table(stats: ProjectStats, *, is_unique: bool) -> Listing:
    name = stats.project.name if is_unique else stats.project.project_id
    title = f"{name}: {counted(len(stats.sessions), 'session')}, brief of {stats.brief_tokens} tokens"
    rows = [_row(session) for session in stats.sessions]
    return Listing(title, ["id", "day", *HEADINGS], rows, numbers=set(HEADINGS))


def _row(session: Mapping[str, Any]) -> list[str]:
    from cortex.transforms.memory.metrics import COLUMNS

    began_at = session["began_at"]
    return [
        str(session["session_id"])[:6],
        f"{began_at:%y-%m-%d}" if began_at else "",
        *("" if session[name] is None else f"{session[name]:.0f}" for name in COLUMNS),
    ]
