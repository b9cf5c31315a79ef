"""What is published with a brief so that it follows the branch of a session (spec 11.3)."""

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.briefs import Draft
from cortex.flows.run.run import Run
from cortex.storage.projects.repository import branches_at
from cortex.transforms.brief.branch_notes import branch_lines, branches_by_memory, doubt_of
from cortex.transforms.memory.reality import branches_behind
from cortex.transforms.views.review import doubts_left


def publish_branches(run: Run, project_id: str, draft: Draft) -> bool:
    """Publish on which branches the lines of a brief hold; return whether that differs from the last one."""
    material = draft.material
    choices = [choice for choice in draft.choices if choice.is_shown]
    shown = {choice.memory_id for choice in choices}
    is_shown = pc.is_in(material.memories["memory_id"], pa.array(sorted(filter(None, shown)), pa.string()))
    is_mine = pc.equal(material.memories["project_id"], pa.scalar(project_id))
    mine = material.memories.select(["memory_id", "project_id", "evidence"])
    rows = mine.filter(pc.and_(is_shown, is_mine)).to_pylist()
    named = {name for row in rows for name in branches_behind(row)}
    tips = branches_at(run.store.projects.paths_of(project_id), named)
    branches = branches_by_memory(rows, tips.within, tips.trunk)
    # What a person let stand in a review is not marked here either.
    left = doubts_left(
        [doubt_of(name, own) for name, own in branches.items()], run.readings.merged_journal(project_id)
    )
    kept = {doubt.memory_id: branches[doubt.memory_id] for doubt in left}
    lines = branch_lines(draft.brief, choices, kept, material.marks)
    return run.store.published.publish_branches(project_id, lines, tips)
