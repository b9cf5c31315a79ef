"""The command `list`: memories without a question, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.options import ALL_PROJECTS, LIMIT, PROJECT_OPTION
from cortex.cli.terminal import Listing
from cortex.transforms.vocabulary import GLOBAL_SCOPE
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.ask.listing import Listed


@command("list", "List memories, the newest first.", place=60)
@PROJECT_OPTION
@ALL_PROJECTS
@click.option(
    "--type", "memory_type", metavar="TYPE", help="Only memories of this type: decision, gotcha, pattern, …"
)
@click.option("--faded", is_flag=True, help="Only inactive memories: archived, replaced or merged.")
@click.option("--pinned", is_flag=True, help="Only pinned memories.")
@LIMIT
def list_(
    context: Context,
    project: str | None,
    all_projects: bool,
    memory_type: str | None,
    faded: bool,
    pinned: bool,
    limit: int,
) -> Answer:
    """List memories, newest first: those of this folder's project, or of all projects if it has none."""
    from cortex.flows.operations.ask import listing

    listed = listing.list_memories(
        context,
        project,
        all_projects=all_projects,
        memory_type=memory_type,
        faded=faded,
        pinned=pinned,
        limit=limit,
    )
    data = {
        "total": listed.total,
        "memories": [
            {**row, "project": listed.labels.get(row["project_id"], row["project_id"])} for row in listed.rows
        ],
    }
    if not listed.rows:
        return Answer(data, [], [_nothing(context, listed, memory_type, faded, pinned)])
    return Answer(data, [_table(listed, faded)], _hints(listed))


def _table(listed: Listed, faded: bool) -> Listing:
    from cortex.flows.operations.lookup import ids

    short = ids.short_ids([row["memory_id"] for row in listed.rows])
    has_several = len({row["project_id"] for row in listed.rows} - {GLOBAL_SCOPE}) > 1
    columns = ["id", "day", "type", *(["project"] if has_several else []), "memory"]
    rows = []
    for row in listed.rows:
        kind = row["status"] if faded else row["memory_type"]
        mark = "★ " if row["is_pinned"] else ""
        if row["project_id"] == GLOBAL_SCOPE and not has_several:
            mark += "everywhere: "
        where = [listed.labels.get(row["project_id"], row["project_id"])] if has_several else []
        text = mark + " ".join(row["text"].split())
        rows.append([short[row["memory_id"]], f"{row['updated_at']:%Y-%m-%d}", kind, *where, text])
    names = ", ".join(listed.labels.get(each, each) for each in listed.project_ids) or "All projects"
    noun = "faded memory" if faded else "memory"
    return Listing(f"{names}: {counted(listed.total, noun)}", columns, rows, wraps="memory", most_lines=2)


def _hints(listed: Listed) -> list[str]:
    left = listed.total - len(listed.rows)
    more = [f"{left} more: --limit {listed.total}"] if left else []
    return [*more, "Read one whole: cortex show ID"]


def _nothing(context: Context, listed: Listed, memory_type: str | None, faded: bool, pinned: bool) -> str:
    from cortex.flows.operations.ask import listing

    if memory_type or faded or pinned or not listed.project_ids:
        return "No memory matches. Without options, cortex list shows all active memories."
    names = ", ".join(listed.labels.get(each, each) for each in listed.project_ids)
    return f"Nothing to list for {names}: {listing.why_nothing(context, listed.project_ids[0])}."
