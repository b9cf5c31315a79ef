"""Whether the brief that is published is the one that would be: found out without what makes briefs."""

from cortex.storage.notes import Output
from cortex.storage.repository import state_of
from cortex.storage.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import GLOBAL_SCOPE


def is_current(store: Store, policy: Policy, settings: Settings, project_id: str) -> bool:
    """Return whether a run would publish for a project what is published, its tables being as they are."""
    is_noted = store.lake.notes.briefs.get(project_id) == shown_from(store, policy, settings, project_id)
    return is_noted and store.has_output("render", project_id)


def shown_from(store: Store, policy: Policy, settings: Settings, project_id: str) -> str:
    """Return a fingerprint of the tables, settings and repository that a brief shows; needs no model."""
    outputs = store.lake.notes.outputs
    tables = [
        outputs.get(Output(stage, scope), "")
        for stage in ("link", "decay")
        for scope in (project_id, GLOBAL_SCOPE)
    ]
    return content_id(*tables, policy.fingerprint, *beside_tables(store, settings, project_id))


def beside_tables(store: Store, settings: Settings, project_id: str) -> tuple[str, str, str]:
    """Return what a brief follows from beside the tables: its budget, its project's name, the repository."""
    repository = state_of(store.projects.paths_of(project_id))
    return str(brief_tokens(store, settings, project_id)), store.projects.name_of(project_id), repository


def brief_tokens(store: Store, settings: Settings, project_id: str) -> int:
    """Return the budget of a project's brief."""
    if not settings.by_project:
        return settings.brief_tokens
    return settings.of_project(project_id, store.projects.paths_of(project_id)).brief_tokens
