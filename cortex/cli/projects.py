"""The commands about projects: list, rename, merge, split."""

from cortex.cli.memories import apply_now, open_store
from cortex.cli.repeating import write_once
from cortex.cli.terminal import hint, print_json, say, table
from cortex.flows.stages.order import APPLY
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import ProjectMerge, ProjectName


def list_projects(*, as_json: bool) -> None:
    """Print the projects with what identifies each and where it lies, and which two look like one."""
    book = open_store().projects
    projects, offers = book.all(), book.offers()
    if as_json:
        told = [
            {
                "id": p.project_id,
                "name": p.name,
                "identity": p.identity,
                "paths": list(p.paths),
                "merged": list(p.merged),
            }
            for p in projects
        ]
        offered = [{"from": o.project_id, "into": o.into, "reason": o.reason} for o in offers]
        return print_json({"projects": told, "offers": offered})
    rows = [[p.name, p.project_id, p.identity, "\n".join([*p.paths, *_holding(p.merged)])] for p in projects]
    table("Projects", ["name", "id", "identity", "folders"], rows)
    for offer in offers:
        hint(f"{offer.reason}: cortex projects merge {offer.project_id} {offer.into}")
    return None


def rename(project: str, name: str, *, as_json: bool) -> None:
    """Give a project another name; its id stays."""
    store = open_store()
    if not name.strip():
        raise UsageError("the new name is empty.", "Write: cortex projects rename PROJECT NAME")
    project_id = (
        _called(store, project)
        or _renamed_before(store, project, name.strip())
        or one_project(store, project)
    )
    write_once(store, ProjectName(name.strip()), project_id)
    applied = apply_now(APPLY)
    if as_json:
        return print_json({"id": project_id, "name": name.strip(), "applied": applied})
    return say(f"{project_id} is called {name.strip()} now.")


def _called(store: Store, project: str, but: str = "") -> str | None:
    """Return the one project of today that is called so: it counts before one that was called so once."""
    ids = [p.project_id for p in store.projects.all() if project in (p.project_id, p.name, *p.paths)]
    ids = [project_id for project_id in ids if project_id != but]
    return ids[0] if len(ids) == 1 else None


def _renamed_before(store: Store, project: str, name: str) -> str | None:
    """Return the project that has the new name already and had the old one: a killed rename is finished."""
    ids = [p.project_id for p in store.projects.all() if p.name == name]
    return next((i for i in ids if project in store.projects.former_names(i)), None)


def merge(project: str, into: str, *, as_json: bool) -> None:
    """Make one project part of another: what both know is one memory from now on."""
    store = open_store()
    kept = one_project(store, into)
    gone = _called(store, project, but=kept) or _part_of(store, project, kept) or one_project(store, project)
    if gone == kept:
        raise UsageError(f"'{project}' and '{into}' are one project.", "cortex projects lists them.")
    write_once(store, ProjectMerge(kept), gone)
    applied = apply_now(APPLY)
    if as_json:
        return print_json({"from": gone, "into": kept, "applied": applied})
    say(f"{gone} is part of {kept} now.")
    return hint(f"To take it back: cortex projects split {gone}")


def _part_of(store: Store, project: str, whole: str) -> str | None:
    """Return the project of that name that was merged into `whole` before: a killed merge is finished."""
    merged = store.projects.merged()
    parts = [name for name in store.projects.merged_named(project) if merged[name] == whole]
    return parts[0] if len(parts) == 1 and project != whole else None


def split(project: str, *, as_json: bool) -> None:
    """Take a merge back: the project stands by itself again."""
    store = open_store()
    merged = store.projects.merged()
    named = store.projects.merged_named(project) or store.projects.split_named(project)
    if not named:
        known = ", ".join(merged) or "none"
        raise NotFound(f"no merged project is called '{project}'.", f"Merged ones: {known}.")
    if len(named) > 1:
        raise UsageError(f"{len(named)} merged projects are called so.", f"Name one: {', '.join(named)}.")
    write_once(store, ProjectMerge(None), named[0])
    applied = apply_now(APPLY)
    if as_json:
        return print_json({"split": named[0], "from": merged.get(named[0]), "applied": applied})
    return say(f"{named[0]} stands by itself again.")


def one_project(store: Store, name: str) -> str:
    """Return the one project that `name` means. Raises UnknownProject, and UsageError where it means more."""
    ids = store.projects.named(name)
    if len(ids) > 1:
        raise UsageError(f"{len(ids)} projects are called '{name}'.", f"Name one by id: {', '.join(ids)}.")
    return ids[0]


def _holding(merged: tuple[str, ...]) -> list[str]:
    return [f"(with {', '.join(merged)})"] if merged else []
