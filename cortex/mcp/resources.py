"""The memory as resources: things with an address that a client lists, completes and reads."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from cortex.flows.context import Context
from cortex.flows.operations.ask import brief as brief_operation
from cortex.flows.operations.ask import listing, memory_details
from cortex.flows.operations.lookup import projects_of
from cortex.flows.operations.maintain import report as report_operation
from cortex.flows.operations.maintain.report import MonthReport
from cortex.hooks.prose.characters import escaped
from cortex.mcp.listings import JSON, MARKDOWN
from cortex.mcp.protocol.call import NOTICE, ToolCall, quoted
from cortex.mcp.tools.read_tools import whole_entry
from cortex.storage.projects.projects import Project
from cortex.transforms.errors import NotFound, UnknownTool
from cortex.transforms.schemas import Row

HERE = "here"
MAX_DECISIONS = 100
_MONTH = re.compile(r"\d{4}-\d\d")


@dataclass(frozen=True)
class Contents:
    """What a resource holds: its kind of text, and the text."""

    mime_type: str
    text: str


def read_resource(context: Context, uri: str) -> Contents:
    """
    Return what stands at an address, of the projects that the caller sees.

    Raises UnknownTool for an address that there is not, NotFound and UnknownProject.
    """
    kind, _, rest = uri.removeprefix("cortex://").partition("/")
    reader = _READERS.get(kind) if uri.startswith("cortex://") else None
    if reader is None:
        raise UnknownTool(f"There is no resource '{uri[:80]}'.", "Ask for resources/list.", "uri")
    return reader(context, unquote(rest) or HERE)


def complete(context: Context, argument: str, value: str) -> list[str]:
    """Return the values of an argument of a template that begin with `value`."""
    if argument == "project":
        names = [project.name for project in _projects(context)]
    elif argument == "session":
        names = [str(row["session_id"]) for row in _sessions(context, HERE)]
    elif argument == "id":
        rows = listing.list_memories(context, _project(context, HERE).project_id, limit=1_000).rows
        names = [str(row["memory_id"]) for row in rows]
    elif argument == "month":
        months = {f"{row['ended_at']:%Y-%m}" for row in _sessions(context, HERE) if row["ended_at"]}
        names = sorted(months, reverse=True)
    else:
        names = []
    return list(dict.fromkeys(name for name in names if name.startswith(value)))


def _project(context: Context, name: str) -> Project:
    projects = projects_of(context, context.open_store(), None if name == HERE else name)
    here = context.open_store().projects.known(str(context.folder)) if name == HERE else None
    for project in projects:
        if name != HERE or project.project_id == here:
            return project
    raise NotFound("this folder belongs to no project that is known.", "Name a project.")


def _projects(context: Context) -> list[Project]:
    return [each for each in context.open_store().projects.all() if context.sees(each.project_id)]


def _sessions(context: Context, name: str) -> list[Row]:
    project_id = _project(context, name).project_id
    return list(listing.list_sessions(context, project_id, limit=1_000_000).rows)


def _brief(context: Context, name: str) -> Contents:
    briefs = brief_operation.read_briefs(context, _project(context, name).project_id)
    return Contents(MARKDOWN, "\n\n".join(brief.text for brief in briefs) or "Nothing is remembered yet.")


def _decisions(context: Context, name: str) -> Contents:
    project = _project(context, name)
    listed = listing.list_memories(context, project.project_id, memory_type="decision", limit=MAX_DECISIONS)
    lines = [
        f'- {row["updated_at"]:%Y-%m-%d} "{quoted(row["text"], 400)}" (id {row["memory_id"][:12]})'
        for row in listed.rows
    ]
    heading = f"# Decisions of {quoted(project.name, 80)}: {len(lines)} of {listed.total}, newest first"
    return Contents(MARKDOWN, "\n".join([heading, NOTICE, *lines]))


def _memory(context: Context, name: str) -> Contents:
    whole = memory_details.expand(context, name)
    if whole is None:
        raise NotFound(f"'{name[:40]}' is not the id of a memory.", "Find it with the tool recall.")
    data = whole_entry(ToolCall(context, {}), whole).data
    return _as_json({"notice": NOTICE, **data})


def _session(context: Context, name: str) -> Contents:
    word = name.strip().lower()
    rows = [row for row in _sessions(context, HERE) if len(word) >= 4 and row["session_id"].startswith(word)]
    if len(rows) != 1:
        raise NotFound(f"{len(rows)} sessions have ids that begin with '{word[:40]}'.", "Give the whole id.")
    return _as_json({"notice": NOTICE, **_plain_row(rows[0])})


def _described(context: Context, name: str) -> Contents:
    project = _project(context, name)
    known = listing.list_known_projects(context)
    row = next((row for row in known if row["project_id"] == project.project_id), {})
    return _as_json({"notice": NOTICE, "name": quoted(project.name, 80), **_plain_row(row)})


def _report(context: Context, name: str) -> Contents:
    month = name if _MONTH.fullmatch(name) else None
    if month is None and name not in (HERE, "last"):
        raise NotFound(f"'{name[:40]}' is not a month.", "Use YYYY-MM.")
    report: MonthReport = report_operation.month_report(context, month, _project(context, HERE).project_id)
    lines = [f"# {quoted(report.title, 200)}", NOTICE]
    for title, rows in report.sections.items():
        lines += [f"## {title}", *(f'- "{quoted(row.text, 400)}"' for row in rows)]
    return Contents(MARKDOWN, "\n".join(lines))


def _plain_row(row: Row) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return quoted(value, 1_000)
    if isinstance(value, list):
        return [_plain_value(each) for each in value[:20]]
    return value if isinstance(value, int | float | bool | None) else str(value)


def _as_json(data: Mapping[str, Any]) -> Contents:
    return Contents(JSON, escaped(json.dumps(data, ensure_ascii=False, indent=1)))


_READERS: Mapping[str, Callable[[Context, str], Contents]] = {
    "brief": _brief,
    "decisions": _decisions,
    "memory": _memory,
    "session": _session,
    "project": _described,
    "report": _report,
}
