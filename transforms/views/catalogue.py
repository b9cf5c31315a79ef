"""What the store holds, for people who look around: its sessions with their results, its projects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.evidence.statements import outcome_parts
from cortex.transforms.schemas import PROJECTS, SESSIONS, Row
from cortex.transforms.words.sentences import shortened

# How much of a session's first prompt is shown where nothing is known of what came of it.
FIRST_PROMPT_CHARS = 120

_TYPED = ("prompt", "command")
_IN_ORDER: list[tuple[str, Literal["ascending", "descending"]]] = [
    ("said_at", "ascending"),
    ("line", "ascending"),
]


def session_rows(turns: pa.Table, memories: pa.Table) -> pa.Table:
    """
    Return SESSIONS, one row a session, ordered by project and session.

    Takes TURNS of one project, each turn once, and its MEMORIES, whose outcome records
    say what came of a session. Subagents count to their session but type no prompts.
    """
    outcomes, begun = _outcomes(memories), _first_prompts(turns)
    branches = _last_branches(turns)
    counts = turns.group_by(["project_id", "session_id"], use_threads=False).aggregate(
        [("said_at", "min"), ("said_at", "max")]
    )
    rows = []
    for row in counts.sort_by([("project_id", "ascending"), ("session_id", "ascending")]).to_pylist():
        session_id = row["session_id"]
        parts, prompts = outcomes.get(session_id, {}), begun.get(session_id, [])
        rows.append(
            {
                "project_id": row["project_id"],
                "session_id": session_id,
                "began_at": row["said_at_min"],
                "ended_at": row["said_at_max"],
                "git_branch": branches.get(session_id),
                "prompts": len(prompts),
                "goal": parts.get("goal"),
                "outcome": parts.get("outcome"),
                "still_open": parts.get("open"),
                "first_prompt": next((words for words in prompts if words), None),
            }
        )
    return SESSIONS.of(rows)


def _first_prompts(turns: pa.Table) -> dict[str, list[str]]:
    """Return the beginnings of what was typed in each session, in its order."""
    typed = pc.and_(pc.is_in(turns["kind"], pa.array(_TYPED)), pc.is_null(turns["agent_id"]))
    rows = turns.filter(typed).select(["session_id", "said_at", "line", "text"]).sort_by(_IN_ORDER)
    begun: dict[str, list[str]] = {}
    for row in rows.to_pylist():
        words = " ".join(row["text"][: 4 * FIRST_PROMPT_CHARS].split())
        begun.setdefault(row["session_id"], []).append(shortened(words, FIRST_PROMPT_CHARS))
    return begun


def _last_branches(turns: pa.Table) -> dict[str, str]:
    named = turns.filter(pc.is_valid(turns["git_branch"]))
    ordered = named.select(["session_id", "git_branch", "said_at", "line"]).sort_by(_IN_ORDER)
    last = ordered.group_by("session_id", use_threads=False)
    rows = last.aggregate([("git_branch", "last")]).to_pylist()
    return {row["session_id"]: row["git_branch_last"] for row in rows}


def _outcomes(memories: pa.Table) -> dict[str, dict[str, str]]:
    """Return the parts of the newest outcome record of each session."""
    columns = ["memory_type", "text", "updated_at", "evidence"]
    rows = [row for row in memories.select(columns).to_pylist() if row["memory_type"] == "outcome"]
    rows.sort(key=lambda row: (row["updated_at"], row["text"]))
    parts = [(row, outcome_parts(row["text"]) or {"outcome": row["text"]}) for row in rows]
    return {place["session_id"]: known for row, known in parts for place in row["evidence"]}


@dataclass(frozen=True)
class ProjectFacts:
    """A project as it is noted, and how much its tables hold."""

    project_id: str
    name: str
    label: str
    identity: str
    folders: Sequence[str]
    edges: int
    passages: int


def project_rows(
    projects: Sequence[ProjectFacts], statuses: Mapping[str, Mapping[str, int]], sessions: pa.Table
) -> pa.Table:
    """
    Return PROJECTS, one row a project in the order given.

    Takes how many memories have which status, by scope, and all SESSIONS.
    """
    ended: dict[str, list[datetime | None]] = {}
    for row in sessions.select(["project_id", "ended_at"]).to_pylist():
        ended.setdefault(row["project_id"], []).append(row["ended_at"])
    return PROJECTS.of(
        [
            _project_row(each, statuses.get(each.project_id, {}), ended.get(each.project_id, []))
            for each in projects
        ]
    )


def _project_row(each: ProjectFacts, statuses: Mapping[str, int], ended: Sequence[datetime | None]) -> Row:
    known, active = sum(statuses.values()), statuses.get("active", 0)
    return {
        "project_id": each.project_id,
        "name": each.name,
        "label": each.label,
        "identity": each.identity,
        "folders": list(each.folders),
        "sessions": len(ended),
        "last_worked_at": max((at for at in ended if at is not None), default=None),
        "active": active,
        "faded": known - active,
        "edges": each.edges,
        "passages": each.passages,
    }
