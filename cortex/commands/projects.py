"""The commands about projects: list, rename, merge, split."""

from cortex.commands.memories import apply_now, open_store
from cortex.commands.terminal import hint, now, print_json, say, table
from cortex.errors import NotFound, UsageError
from cortex.flows.stages import TOLD
from cortex.storage.store import Store
from cortex.transforms.journal import entry


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
    project_id = one_project(store, project)
    store.journal.write(entry("project", project_id, {"name": name.strip()}, recorded_at=now()))
    applied = apply_now(TOLD)
    if as_json:
        return print_json({"id": project_id, "name": name.strip(), "applied": applied})
    return say(f"{project_id} is called {name.strip()} now.")


def merge(project: str, into: str, *, as_json: bool) -> None:
    """Make one project part of another: what both know is one memory from now on."""
    store = open_store()
    gone, kept = one_project(store, project), one_project(store, into)
    if gone == kept:
        raise UsageError(f"'{project}' and '{into}' are one project.", "cortex projects lists them.")
    store.journal.write(entry("project", gone, {"merged_into": kept}, recorded_at=now()))
    applied = apply_now(TOLD)
    if as_json:
        return print_json({"from": gone, "into": kept, "applied": applied})
    say(f"{gone} is part of {kept} now.")
    return hint(f"To take it back: cortex projects split {gone}")


def split(project: str, *, as_json: bool) -> None:
    """Take a merge back: the project stands by itself again."""
    store = open_store()
    merged = store.projects.merged()
    named = store.projects.merged_named(project)
    if not named:
        known = ", ".join(merged) or "none"
        raise NotFound(f"no merged project is called '{project}'.", f"Merged ones: {known}.")
    if len(named) > 1:
        raise UsageError(f"{len(named)} merged projects are called so.", f"Name one: {', '.join(named)}.")
    store.journal.write(entry("project", named[0], {"merged_into": None}, recorded_at=now()))
    applied = apply_now(TOLD)
    if as_json:
        return print_json({"split": named[0], "from": merged[named[0]], "applied": applied})
    return say(f"{named[0]} stands by itself again.")


def one_project(store: Store, name: str) -> str:
    """Return the one project that `name` means. Raises UnknownProject, and UsageError where it means more."""
    ids = store.projects.named(name)
    if len(ids) > 1:
        raise UsageError(f"{len(ids)} projects are called '{name}'.", f"Name one by id: {', '.join(ids)}.")
    return ids[0]


def _holding(merged: tuple[str, ...]) -> list[str]:
    return [f"(with {', '.join(merged)})"] if merged else []
