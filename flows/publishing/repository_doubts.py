"""What a project's repository on this machine says of its memories; of the past it says nothing."""

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run.run import Run
from cortex.storage.projects.repository import commits_since, doubts_of
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.schemas import values
from cortex.transforms.views.review import doubts_left


def doubts_about(run: Run, project_id: str, memories: pa.Table) -> list[Doubt]:
    """Return what the repository has against MEMORIES (spec 11.3) that no person let stand."""
    if run.readings.is_past:
        return []
    doubts = doubts_of(run.store.projects.paths_of(project_id), memories, run.policy)
    return doubts_left(doubts, run.readings.merged_journal(project_id)) if doubts else []


def repository_line(run: Run, project_id: str) -> str:
    """Return one line on what git has seen since the project's last session; empty for little."""
    sessions = run.readings.sessions().filter(pc.field("project_id") == project_id)
    if run.readings.is_past or not sessions.num_rows:
        return ""
    last = max(values(sessions, "ended_at"))
    count, head = commits_since(run.store.projects.paths_of(project_id), last)
    if count < run.policy.threshold("reality_commits_told"):
        return ""
    return f"{count} commits since the last session noted here ({last:%d %b %y}); HEAD was {head}."
