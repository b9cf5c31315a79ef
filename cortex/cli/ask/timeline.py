"""The command `timeline`: the sessions, newest first, with their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command
from cortex.cli.options import ALL_PROJECTS, LIMIT, PROJECT_OPTION
from cortex.cli.terminal import Listing
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.listing import Listed
    from cortex.transforms.schemas import Row


@command("timeline", "List sessions with their results.", place=90)
@PROJECT_OPTION
@ALL_PROJECTS
@LIMIT
def timeline(context: Context, project: str | None, all_projects: bool, limit: int) -> Answer:
    """List sessions, newest first, with what was done and what was left open."""
    from cortex.flows.operations.ask import listing

    listed = listing.list_sessions(context, project, all_projects=all_projects, limit=limit)
    data = {"total": listed.total, "sessions": [session_as_dict(row, listed) for row in listed.rows]}
    if not listed.rows:
        return Answer(data, [], ["No session of that project has been read yet."])
    left = listed.total - len(listed.rows)
    more = [f"{left} more: --limit {listed.total}"] if left else []
    return Answer(data, [_table(listed)], [*more, "Read one whole: cortex show SESSION"])


def session_as_dict(row: Row, listed: Listed) -> dict[str, object]:
    """Return a session for programs."""
    return {**row, "project": listed.labels.get(row["project_id"], row["project_id"])}


def _table(listed: Listed) -> Listing:
    from cortex.flows.operations.lookup import ids

    short = ids.short_ids([row["session_id"] for row in listed.rows], least=8)
    has_several = len({row["project_id"] for row in listed.rows}) > 1
    columns = ["session", "ended", *(["project"] if has_several else []), "result"]
    rows = []
    for row in listed.rows:
        ended = f"{row['ended_at']:%Y-%m-%d %H:%M}" if row["ended_at"] else ""
        where = [listed.labels.get(row["project_id"], row["project_id"])] if has_several else []
        rows.append([short[row["session_id"]], ended, *where, _summary(row)])
    names = ", ".join(listed.labels.get(each, each) for each in listed.project_ids) or "All projects"
    return Listing(
        f"{names}: {counted(listed.total, 'session')}", columns, rows, wraps="result", most_lines=2
    )


def _summary(row: Row) -> str:
    text = row["outcome"] or row["goal"] or row["first_prompt"] or "(no prompt)"
    return f"{text.rstrip('.')}. Open: {row['still_open']}" if row["still_open"] else text
