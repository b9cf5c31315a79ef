"""The command `today`: what the last session did and what it left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command
from cortex.cli.ask.timeline import session_as_dict
from cortex.cli.options import PROJECT_OPTION
from cortex.transforms.words.ages import age_of, counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.listing import Listed
    from cortex.transforms.schemas import Row


@command("today", "Summarize the last session: what was done and what is open.", place=50)
@PROJECT_OPTION
def today(context: Context, project: str | None) -> Answer:
    """
    Summarize the last session: what was done and what is open. Outside a project: the projects worked on
    last.
    """
    from cortex.flows.operations.ask import listing

    listed = listing.last_sessions(context, project)
    data = {"sessions": [session_as_dict(row, listed) for row in listed.rows]}
    if not listed.rows:
        return Answer(data, [], ["No session of that project has been read yet."])
    waiting = listing.waiting(context)
    hints = [f"{counted(waiting, 'transcript')} waiting: cortex run"] if waiting else []
    return Answer(data, _lines(listed, context.now), hints)


def _lines(listed: Listed, now: datetime) -> Iterator[str]:
    for at, row in enumerate(listed.rows):
        if at:
            yield ""
        yield from _session_lines(row, listed, now)


def _session_lines(row: Row, listed: Listed, now: datetime) -> Iterator[str]:
    label = listed.labels.get(row["project_id"], row["project_id"])
    branch = f", on {row['git_branch']}" if row["git_branch"] else ""
    when = f"{age_of(row['ended_at'], now)} ago" if row["ended_at"] else "at an unknown time"
    yield f"{label}: session {row['session_id'][:8]}, {when}{branch}"
    if row["goal"] or not row["outcome"]:
        yield f"  asked  {row['goal'] or row['first_prompt'] or '(no prompt)'}"
    for label, name in (("done", "outcome"), ("open", "still_open")):
        for at, part in enumerate(row[name].split("; ") if row[name] else ()):
            yield f"  {'' if at else label:<5}  {part}"
