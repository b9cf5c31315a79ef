"""What is published of a project for its next session: the brief and the archive of its older decisions."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from cortex.flows.context import Run
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.manifest import PROJECTIONS
from cortex.storage.repository import state_of
from cortex.transforms.decisions_archive import render_archive
from cortex.transforms.identity import content_id
from cortex.transforms.render import Choice, choose, lay_out


@dataclass(frozen=True)
class Material:
    """What a project's brief is made from; `doubts` are the repository's, by memory_id."""

    project_name: str
    memories: pa.Table
    edges: pa.Table
    sessions: pa.Table
    marks: Mapping[str, str]
    doubts: Mapping[str, str]
    repository: str
    budget_tokens: int


def material_of(run: Run, project_id: str) -> Material:
    """Return what a project's tables and its repository say now."""
    tables, projects = run.store.tables, run.store.projects
    rows = [tables.open(scope, "memories").read() for scope in (project_id, GLOBAL_SCOPE)]
    doubts = run.doubts(project_id, rows[0])
    return Material(
        projects.name_of(project_id),
        pa.concat_tables(rows),
        tables.open(project_id, "edges").read(),
        run.sessions(),
        {doubt.memory_id: doubt.mark for doubt in doubts},
        {doubt.memory_id: doubt.reason for doubt in doubts},
        run.repository_line(project_id),
        run.brief_tokens(project_id),
    )


def choices_of(run: Run, material: Material) -> list[Choice]:
    """Return every candidate for the brief, shown or not, with its reason."""
    return choose(
        material.memories,
        material.edges,
        run.policy,
        project_name=material.project_name,
        budget_tokens=material.budget_tokens,
        marks=material.marks,
        sessions=material.sessions,
        repository=material.repository,
    )


def brief_of(run: Run, project_id: str) -> str:
    """Return the brief of a project as its tables say it now."""
    material = material_of(run, project_id)
    return lay_out(choices_of(run, material), project_name=material.project_name)


def brief_made_from(run: Run, project_id: str) -> str:
    """Return a fingerprint of all that a project's brief and archive follow from."""
    projects = run.store.projects
    states = [
        content_id(run.inputs(scope), run.model, run.day.isoformat()) for scope in (project_id, GLOBAL_SCOPE)
    ]
    return content_id(
        *states,
        str(run.brief_tokens(project_id)),
        projects.name_of(project_id),
        state_of(projects.paths_of(project_id)),
    )


def archive_of(run: Run, project_id: str) -> str:
    """Return the project's decisions that no brief has room for any more; empty for none."""
    tables = run.store.tables
    rows = [tables.open(scope, "memories").read() for scope in (project_id, GLOBAL_SCOPE)]
    return render_archive(
        pa.concat_tables(rows),
        run.policy,
        project_name=run.store.projects.name_of(project_id),
        sessions=run.sessions(),
    )


def drop_merged(run: Run) -> None:
    """
    Remove the tables and published files of projects that were merged into another one.

    What the stages noted about them is forgotten first: split off again, they are made anew. Killed in
    between, the next run finds the folders and goes on.
    """
    merged = run.store.projects.merged()
    held = {*run.store.tables.scopes(), *run.store.published.projects()}
    gone = sorted(name for name in held if name in merged and merged[name] not in run.failed)
    if not gone:
        return
    with run.store.lake.change() as change:
        for note in list(change.manifest.stages):
            stage, _, scope = note.partition(":")
            if stage in PROJECTIONS and scope in gone:
                del change.manifest.stages[note]
    for name in gone:
        run.store.telling.tell(name, (), run.now)  # the other project's brief tells it from now on
        run.store.tables.drop(name)
        run.store.published.drop(name)
