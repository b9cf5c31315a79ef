"""Lists, renames, merges and splits projects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortex.flows.context import Context
from cortex.flows.operations.edit.apply import Applied, apply_now, write_once
from cortex.flows.operations.lookup import project_of
from cortex.flows.stages.order import APPLY
from cortex.storage.projects.projects import Offer, Project
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import ProjectMerge, ProjectName


@dataclass(frozen=True)
class Projects:
    """The projects of a store, labels that tell them apart by id, and which two look like one."""

    projects: Sequence[Project]
    offers: Sequence[Offer]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Renamed:
    """A project with its new name."""

    project_id: str
    name: str
    applied: Applied


@dataclass(frozen=True)
class Membership:
    """A project that became part of another, or no longer is; `into` None if it was split before."""

    project_id: str
    into: str | None
    applied: Applied


def list_projects(context: Context) -> Projects:
    """Return the projects with what identifies each and its folders, and which two look like one."""
    register = context.open_store().projects
    return Projects(register.all(), register.offers(), register.labels())


def rename_project(context: Context, project: str, name: str) -> Renamed:
    """Give a project another name; its id stays. Raises UnknownProject, UsageError."""
    store, name = context.open_store(), name.strip()
    if not name:
        raise UsageError("the new name is empty.", "Write: cortex projects rename PROJECT NAME")
    project_id = (
        _called(store, project)
        or _renamed_before(store, project, name)
        or project_of(context, store, project)
    )
    write_once(context, store, ProjectName(name), project_id)
    return Renamed(project_id, name, apply_now(context, APPLY))


def merge_projects(context: Context, project: str, into: str) -> Membership:
    """Make one project part of another: what both know is one memory from now on."""
    store = context.open_store()
    kept = project_of(context, store, into)
    gone = (
        _called(store, project, but=kept)
        or _part_of(store, project, kept)
        or project_of(context, store, project)
    )
    if gone == kept:
        raise UsageError(f"'{project}' and '{into}' are the same project.", "cortex projects lists them.")
    write_once(context, store, ProjectMerge(kept), gone)
    return Membership(gone, kept, apply_now(context, APPLY))


def split_project(context: Context, project: str) -> Membership:
    """Undo a merge: the project stands by itself again. Raises NotFound; UsageError for several."""
    store = context.open_store()
    merged = store.projects.merged()
    names = store.projects.merged_named(project) or store.projects.split_named(project)
    if not names:
        known = ", ".join(merged) or "none"
        raise NotFound(f"no merged project is called '{project}'.", f"Merged projects: {known}.")
    if len(names) > 1:
        raise UsageError(
            f"{len(names)} merged projects are called '{project}'.", f"Name one: {', '.join(names)}."
        )
    write_once(context, store, ProjectMerge(None), names[0])
    return Membership(names[0], merged.get(names[0]), apply_now(context, APPLY))


def _called(store: Store, project: str, but: str = "") -> str | None:
    """Return the only project that is called so today: it counts before one that was called so before."""
    ids = [p.project_id for p in store.projects.all() if project in (p.project_id, p.name, *p.paths)]
    ids = [project_id for project_id in ids if project_id != but]
    return ids[0] if len(ids) == 1 else None


def _renamed_before(store: Store, project: str, name: str) -> str | None:
    """Return the project that has the new name already and had the old one: a killed rename is finished."""
    ids = [p.project_id for p in store.projects.all() if p.name == name]
    return next((i for i in ids if project in store.projects.former_names(i)), None)


def _part_of(store: Store, project: str, whole: str) -> str | None:
    """Return the project of that name that was merged into `whole` before: a killed merge is finished."""
    merged = store.projects.merged()
    parts = [name for name in store.projects.merged_named(project) if merged[name] == whole]
    return parts[0] if len(parts) == 1 and project != whole else None
