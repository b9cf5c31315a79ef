"""A project's brief as a run would publish it: its text, its archive, and why each line is in or out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cortex.flows.context import Context
from cortex.storage.lake.noted_projects import KnownProject
from cortex.storage.published.catalogue import Catalogue
from cortex.transforms.errors import NotFound

if TYPE_CHECKING:
    from cortex.storage.projects.projects import Project, ProjectRegister
    from cortex.storage.store import Store
    from cortex.transforms.brief.explanation import Choice


@dataclass(frozen=True)
class Brief:
    """The text of a project's brief, or of its archive of older decisions; "" if there is nothing."""

    project_id: str
    text: str


@dataclass(frozen=True)
class Explanation:
    """
    The candidates for a project's brief with reason and rank, and doubts about some by memory id.

    What is published has the best of those left out alone: `total` counts all of them.
    """

    project: Project | KnownProject
    choices: Sequence[Choice]
    doubts: Mapping[str, str]
    total: int
    published: str | None = None
    is_by_model: bool = False

    @property
    def text(self) -> str:
        """Return the brief word for word."""
        if self.published is not None:
            return self.published
        from cortex.transforms.brief.render import lay_out

        return lay_out(self.choices, project_name=self.project.name, is_by_model=self.is_by_model)

    @property
    def shown(self) -> list[Choice]:
        """Return the candidates that are in."""
        return [choice for choice in self.choices if choice.is_shown]

    @property
    def left_out(self) -> list[Choice]:
        """Return the best of those that are not."""
        from cortex.transforms.brief.explanation import brief_choices_of

        return list(brief_choices_of(self.choices, {}).left_out)


def read_briefs(
    context: Context, project: str | None = None, *, archive: bool = False, as_of: str | None = None
) -> list[Brief]:
    """Return the briefs of the named projects, else of the folder's; with `archive` their older decisions."""
    if as_of is None and (briefs := _published(context, project, archive)):
        return briefs
    store = context.open_store()
    ids = _projects_meant(context, store.projects, project)
    if as_of is None:
        return [Brief(project_id, _text_now(context, store, project_id, archive)) for project_id in ids]
    from cortex.flows.operations.ask.sql import store_as_of
    from cortex.flows.publishing.briefs import archive_of, brief_of

    past, read = store_as_of(context, as_of, ids), archive_of if archive else brief_of
    return [Brief(project_id, read(past, project_id)) for project_id in ids]


def on_branch(context: Context, briefs: Sequence[Brief], branch: str) -> list[Brief]:
    """Return briefs as a session on a branch is given them. Raises NotFound for a branch nobody knows."""
    # Imported here: only this asks a repository for its branches.
    from cortex.storage.projects.repository import has_branch

    store, catalogue = context.open_store(), context.open_catalogue()
    rows = catalogue.read("sessions", ["project_id", "git_branch"], {"git_branch": [branch]})
    known = {row["project_id"] for row in rows}
    for each in briefs:
        paths = store.projects.paths_of(each.project_id)
        if each.project_id not in known and not has_branch(paths, branch):
            name = store.projects.label_of(each.project_id)
            raise NotFound(f"{name} has no branch '{branch}'.", "Give a branch of it: git branch --list")
    return [
        replace(each, text=catalogue.text_on_branch(each.project_id, branch, each.text)) for each in briefs
    ]


def _published(context: Context, name: str | None, archive: bool) -> list[Brief]:
    """Return what is published where it is what a run would publish; none if only the store can say."""
    from cortex.storage.published.catalogue import is_noted

    catalogue = context.open_catalogue()
    if not catalogue.is_filled or catalogue.has_waiting_entries:
        return []
    here = None if name else catalogue.project_at(context.folder)
    projects = catalogue.named(name) if name else catalogue.project_called(here) if here else []
    if len(projects) > 1:  # the store's register says which ones
        return []
    notes, policy = catalogue.manifest.notes, context.policy
    if not all(is_noted(notes, policy, context.settings, project) for project in projects):
        return []
    return [Brief(each.project_id, catalogue.text_of(each.project_id, archive=archive)) for each in projects]


def _projects_meant(context: Context, register: ProjectRegister, name: str | None) -> list[str]:
    if name:
        return register.named(name)
    # The published map first: asking git takes time, and so does looking for secrets in a path.
    here = Catalogue(context.home).project_at(context.folder)
    here = register.canonical(here) if here else register.known(str(context.folder))
    return [here] if here else []


def _text_now(context: Context, store: Store, project_id: str, archive: bool) -> str:
    """Return what is published of a project if nothing has changed since, else what would be."""
    from cortex.storage.published.catalogue import is_noted

    known = store.projects.known_project(project_id)
    has_brief = store.has_output("render", project_id)
    if has_brief and is_noted(store.lake.notes, context.policy, context.settings, known):
        return store.published.archive(project_id) if archive else store.published.brief(project_id)
    # Imported only now: what makes briefs takes a second to import.
    from cortex.flows.engines.runs import read_only_run
    from cortex.flows.publishing.briefs import archive_of, brief_of

    return (archive_of if archive else brief_of)(read_only_run(context, with_model=False), project_id)


def explain_briefs(
    context: Context, project: str | None = None, *, as_of: str | None = None
) -> list[Explanation]:
    """Return why each candidate is in the brief or not, by project. Raises as `projects_of`."""
    from cortex.flows.engines.runs import read_only_run
    from cortex.flows.operations.ask.sql import store_as_of
    from cortex.flows.operations.lookup import projects_of
    from cortex.flows.publishing.briefs import brief_choices, brief_inputs

    projects = projects_of(context, context.open_store(), project)
    ids = [project.project_id for project in projects]
    run = read_only_run(context, with_model=False) if as_of is None else store_as_of(context, as_of, ids)
    explanations = []
    for project_meant in projects:
        inputs = brief_inputs(run, project_meant.project_id)
        choices = brief_choices(run, inputs)
        explanations.append(
            Explanation(
                project_meant,
                choices,
                dict(inputs.doubts),
                len(choices),
                is_by_model=inputs.is_read_by_model,
            )
        )
    return explanations


def published_explanation(context: Context, project_id: str) -> Explanation | None:
    """Return what is published of why a project's brief is as it is; None if a run would say otherwise."""
    from cortex.storage.published.catalogue import is_noted
    from cortex.transforms.brief.explanation import choices_in

    catalogue = context.open_catalogue()
    if not catalogue.is_filled or catalogue.has_waiting_entries:
        return None
    for project in catalogue.project_called(project_id):
        choices = choices_in(catalogue.explanation_of(project_id))
        if choices and is_noted(catalogue.manifest.notes, context.policy, context.settings, project):
            listed, text = [*choices.shown, *choices.left_out], catalogue.text_of(project_id, archive=False)
            return Explanation(project, listed, choices.doubts, choices.candidates, text)
    return None
