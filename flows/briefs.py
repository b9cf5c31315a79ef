"""What is published of a project for its next session: the brief and the archive of its older decisions."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from cortex.flows.run import Run
from cortex.storage.notes import Output
from cortex.storage.repository import state_of
from cortex.transforms.brief.decisions_archive import render_archive
from cortex.transforms.brief.render import Choice, choose, lay_out
from cortex.transforms.identity import content_id
from cortex.transforms.masking import SECRET, without_secrets
from cortex.transforms.schemas import GLOBAL_SCOPE


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
    choices = choose(
        material.memories,
        material.edges,
        run.policy,
        project_name=material.project_name,
        budget_tokens=material.budget_tokens,
        marks=material.marks,
        sessions=material.sessions,
        repository=material.repository,
    )
    return without_secrets(choices, project_name=material.project_name)


@dataclass(frozen=True)
class Draft:
    """A project's brief with what it was chosen from, so the repository is searched once for all."""

    material: Material
    choices: list[Choice]
    brief: str


def draft_of(run: Run, project_id: str) -> Draft:
    """Return the brief of a project as its tables say it now, and what it was chosen from."""
    material = material_of(run, project_id)
    choices = choices_of(run, material)
    run.report.leave_out(project_id, [c for c in choices if c.reason.startswith(SECRET)])
    return Draft(material, choices, lay_out(choices, project_name=material.project_name))


def brief_of(run: Run, project_id: str) -> str:
    """Return the brief of a project as its tables say it now."""
    return draft_of(run, project_id).brief


def brief_made_from(run: Run, project_id: str) -> str:
    """Return a fingerprint of all that a project's brief and archive follow from."""
    states = [run.aged_inputs(scope, run.day) for scope in (project_id, GLOBAL_SCOPE)]
    return content_id(*states, *_outside(run, project_id))


def brief_now(run: Run, project_id: str) -> str:
    """Return the brief as it would be published now: what is published, where nothing has changed since."""
    return run.store.published.brief(project_id) if is_current(run, project_id) else brief_of(run, project_id)


def archive_now(run: Run, project_id: str) -> str:
    """Return the archive as it would be published now."""
    if is_current(run, project_id):
        return run.store.published.archive(project_id)
    return archive_of(run, project_id)


def is_current(run: Run, project_id: str) -> bool:
    """Return whether a run would publish for a project what is published, its tables being as they are."""
    is_noted = run.store.lake.notes.briefs.get(project_id) == shown_from(run, project_id)
    return is_noted and run.store.has_output("render", project_id)


def shown_from(run: Run, project_id: str) -> str:
    """Return a fingerprint of the tables, settings and repository that a brief shows; needs no model."""
    made = run.store.lake.notes.made
    tables = [
        made.get(Output(stage, scope), "")
        for stage in ("link", "decay")
        for scope in (project_id, GLOBAL_SCOPE)
    ]
    return content_id(*tables, run.policy.fingerprint, *_outside(run, project_id))


def _outside(run: Run, project_id: str) -> tuple[str, str, str]:
    """Return what a brief follows from beside the tables: its budget, its project's name, the repository."""
    projects = run.store.projects
    repository = state_of(projects.paths_of(project_id))
    return str(run.brief_tokens(project_id)), projects.name_of(project_id), repository


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
        change.notes = change.notes.without_projections(gone)
    for name in gone:
        run.store.telling.tell(name, (), run.now)  # the other project's brief tells it from now on
        run.store.tables.drop(name)
        run.store.published.drop(name)
