"""What `memory.duckdb` and `cortex sql` show besides the lake's own tables: snapshots, views, comments."""

from collections.abc import Iterator

from cortex.transforms.schemas import (
    CALLS,
    EDGES,
    EVENTS,
    JOURNAL,
    MEMORIES,
    METRICS,
    PROJECTS,
    SESSIONS,
    TURNS,
)

# What is read from the lake itself.
FROM_THE_LAKE = (TURNS, EVENTS, JOURNAL, CALLS)

# What a run makes from it and publishes, as a table and as Parquet.
SNAPSHOTS = (MEMORIES, EDGES, METRICS, PROJECTS, SESSIONS)

# Turns whose words somebody chose: what a search by meaning looks through.
_PROSE = ("prompt", "command", "text", "rejection", "choice", "plan", "summary", "recap")

# Views on `turns`, by name.
LAKE_VIEWS = {
    "passages": (
        "select turn_id, project_id, session_id, agent_id, kind, said_at, text, trust, git_branch, file, "
        f"line from turns where kind in ({', '.join(repr(kind) for kind in _PROSE)})"
    ),
    "tool_calls": (
        "select call.turn_id, call.project_id, call.session_id, call.agent_id, call.said_at, call.tool_name, "
        "call.text as argument, call.tool_input, result.tool_status as status, result.text as result, "
        "epoch(result.said_at - call.said_at) as seconds, call.git_branch, call.cwd, call.file, call.line "
        "from turns as call left join turns as result on result.kind = 'tool_result' "
        "and result.project_id = call.project_id and result.session_id = call.session_id "
        "and result.tool_use_id = call.tool_use_id where call.kind = 'tool_call'"
    ),
}

VIEW_MEANINGS = {
    "turns": "What was said and done: prompts, answers, tool calls and their results.",
    "events": "What was noticed in the turns: decisions, rejections, errors resolved, files changed.",
    "journal": "Every change that was made on purpose: remember, edit, pin, forget, merge, recall.",
    "calls": "What programs did through the MCP server, up to the last run; cortex audit has those since.",
    "memories": "The facts kept, with type, status, confidence and the lines they rest on.",
    "edges": "Relations between memories.",
    "metrics": "Figures by session: corrections, decisions made twice, files read again.",
    "projects": "The projects, with folders, sessions and how much each remembers.",
    "sessions": "The sessions: when, on which branch, what came of each and what was left open.",
    "passages": "The turns that are prose: prompts, answers, plans, choices, summaries.",
    "tool_calls": "One row a tool call, with its result, status and seconds.",
}

_VIEW_COLUMNS = {
    "tool_calls": {
        "argument": "salient argument of the call: a command, a path",
        "status": "one of TOOL_STATUSES; null where no result came",
        "result": "what came back, redacted",
        "seconds": "from the call to its result [seconds]",
    },
}

ALL_NAMES = tuple(VIEW_MEANINGS)


def comments(*, is_sealed: bool) -> Iterator[str]:
    """Yield the statements that comment on every table, view and column; of a sealed lake on snapshots."""
    for table in SNAPSHOTS if is_sealed else (*FROM_THE_LAKE, *SNAPSHOTS):
        kind = "table" if table in SNAPSHOTS else "view"
        yield f"comment on {kind} {table.name} is {_quoted(VIEW_MEANINGS[table.name])}"
        for name in table.arrow.names:
            yield f"comment on column {table.name}.{name} is {_quoted(table.meaning(name))}"
    for view in () if is_sealed else LAKE_VIEWS:
        yield f"comment on view {view} is {_quoted(VIEW_MEANINGS[view])}"
        own = _VIEW_COLUMNS.get(view, {})
        listed = LAKE_VIEWS[view].partition(" from ")[0].removeprefix("select ").split(", ")
        for name in (column.rpartition(" as ")[2].rpartition(".")[2] for column in listed):
            meaning = own.get(name) or TURNS.meaning(name)
            yield f"comment on column {view}.{name} is {_quoted(meaning)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
