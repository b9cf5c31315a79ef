"""What is published beside a brief so that it follows the branch a session stands on (spec 11.3)."""

from cortex.flows.briefs import Draft
from cortex.flows.run import Run
from cortex.storage.repository import branches_at
from cortex.transforms.branch_notes import branch_lines, branches_by_memory, doubt_of
from cortex.transforms.memory.reality import branches_behind
from cortex.transforms.memory.review import doubts_left


def publish_branches(run: Run, project_id: str, draft: Draft) -> bool:
    """Publish on which branches the lines of a brief hold; return whether that differs from the last one."""
    material = draft.material
    choices = [choice for choice in draft.choices if choice.is_shown]
    shown = {choice.memory_id for choice in choices}
    mine = material.memories.select(["memory_id", "project_id", "evidence"]).to_pylist()
    rows = [row for row in mine if row["memory_id"] in shown and row["project_id"] == project_id]
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
