"""What is published of a project for its next session: the brief and the archive of its older decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from cortex.flows.publishing.repository_doubts import doubts_about, repository_line
from cortex.flows.run.published_briefs import beside_tables
from cortex.flows.run.run import Run
from cortex.transforms.brief.brief_sections import Choice
from cortex.transforms.brief.confirmation import asked_until
from cortex.transforms.brief.decisions_archive import render_archive
from cortex.transforms.brief.eligible import standings
from cortex.transforms.brief.render import choose, lay_out
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Confirm, entries_in
from cortex.transforms.masking import SECRET, without_secrets
from cortex.transforms.schemas import EDGES, GLOBAL_SCOPE, MEMORIES


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
    confirms_until: datetime | None
    is_read_by_model: bool


def material_of(run: Run, project_id: str) -> Material:
    """Return what a project's tables and its repository say now."""
    rows = _memories_for(run, project_id)
    doubts = doubts_about(run, project_id, rows[0])
    return Material(
        run.store.projects.name_of(project_id),
        pa.concat_tables(rows),
        run.store.tables.open(project_id, "edges").read(),
        run.readings.sessions(),
        {doubt.memory_id: doubt.mark for doubt in doubts},
        {doubt.memory_id: doubt.reason for doubt in doubts},
        repository_line(run, project_id),
        run.brief_tokens(project_id),
        _confirms_until(run, project_id),
        run.is_read_by_model(project_id),
    )


def _confirms_until(run: Run, project_id: str) -> datetime | None:
    """Return before when the claims were last said that this brief asks about; None where it asks nothing."""
    confirmed = [
        row["recorded_at"] for row, _ in entries_in(run.readings.merged_journal(project_id), Confirm)
    ]
    last = max(confirmed, default=None)
    return asked_until(run.readings.sessions(), project_id, last, run.policy)


def _memories_for(run: Run, project_id: str) -> list[pa.Table]:
    """Return the MEMORIES of the project and the global ones."""
    return [run.store.tables.open(scope, "memories").read() for scope in (project_id, GLOBAL_SCOPE)]


def brief_choices(run: Run, material: Material) -> list[Choice]:
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
        confirms_until=material.confirms_until,
        is_read_by_model=material.is_read_by_model,
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
    choices = brief_choices(run, material)
    run.report.leave_out(project_id, [c for c in choices if c.reason.startswith(SECRET)])
    text = lay_out(choices, project_name=material.project_name, is_by_model=material.is_read_by_model)
    return Draft(material, choices, text)


def without_rows(draft: Draft) -> Draft:
    """Return a draft without the memories and edges that it was made from, which fill the memory."""
    bare = replace(draft.material, memories=MEMORIES.empty(), edges=EDGES.empty())
    return replace(draft, material=bare)


def with_rows(run: Run, project_id: str, draft: Draft) -> Draft:
    """Return a draft with the memories that it was made from, read again where it lacks them."""
    if draft.material.memories.num_rows:
        return draft
    memories = pa.concat_tables(_memories_for(run, project_id))
    return replace(draft, material=replace(draft.material, memories=memories))


def brief_of(run: Run, project_id: str) -> str:
    """Return the brief of a project as its tables say it now."""
    return draft_of(run, project_id).brief


def shown_everywhere(run: Run) -> str:
    """
    Return a fingerprint of what the global memories say in every brief: their rows, and their standing.

    Not of what they are made from: that changes with each session of any project, and no brief with it.
    """
    rows = run.store.tables.open(GLOBAL_SCOPE, "memories").read()
    of_each = standings(rows, run.readings.sessions(), run.policy)
    since = sorted((name, standing.sessions_since) for name, standing in of_each.items())
    return content_id(*map(repr, rows.to_pylist()), repr(since))


def rendered_from(run: Run, project_id: str, everywhere: str) -> str:
    """
    Return a fingerprint of all that a project's brief and archive follow from.

    `everywhere` is `shown_everywhere` of the run.
    """
    state, known = run.fingerprints.aged(project_id, run.day), run.store.projects.known_project(project_id)
    return content_id(state, everywhere, *beside_tables(run.settings, known))


def archive_of(run: Run, project_id: str) -> str:
    """Return the project's decisions that no brief has room for any more; empty for none."""
    return render_archive(
        pa.concat_tables(_memories_for(run, project_id)),
        run.policy,
        project_name=run.store.projects.name_of(project_id),
        sessions=run.readings.sessions(),
    )


def drop_merged(run: Run) -> None:
    """
    Remove the tables and published files of projects that were merged into another one, or have nothing left.

    Retention may have taken all that a project said. What the stages noted about them is forgotten first:
    split off again, they are rebuilt. Killed in between, the next run finds the folders and goes on.
    """
    merged = run.store.projects.merged()
    held = {*run.store.tables.scopes(), *run.store.published.projects()}
    emptied = {project.project_id for project in run.store.projects.all()} - {*run.readings.scopes()}
    gone = sorted(
        name
        for name in held
        if (merged[name] not in run.outcome.failed if name in merged else name in emptied)
    )
    if not gone:
        return
    with run.store.lake.change() as change:
        change.notes = change.notes.without_projections(gone)
    for name in gone:
        run.store.shown_lines.show(name, (), run.now)  # from now on the other project's brief shows it
        run.store.tables.drop(name)
        run.store.published.drop(name)
