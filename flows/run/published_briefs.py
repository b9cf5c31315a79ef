"""Whether the brief that is published is the one that would be: found out without what makes briefs."""

from cortex.storage.ground.git import state_of
from cortex.storage.lake.noted_projects import KnownProject
from cortex.storage.lake.notes import ManifestNotes, Output
from cortex.storage.settings.settings import Settings
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.vocabulary import GLOBAL_SCOPE

# What the global memories say in every brief, as the stage render notes it.
SHOWN_EVERYWHERE = Output("shown", GLOBAL_SCOPE)
# What that was made of: the table of the global memories, and the sessions that count how old they are.
SHOWN_FROM = Output("shown_from", GLOBAL_SCOPE)


def is_noted(notes: ManifestNotes, policy: Policy, settings: Settings, project: KnownProject) -> bool:
    """Return whether a run would publish for a project what one has noted, its tables being as they are."""
    return notes.briefs.get(project.project_id) == shown_from(notes, policy, settings, project)


def shown_from(notes: ManifestNotes, policy: Policy, settings: Settings, project: KnownProject) -> str:
    """Return a fingerprint of the tables, settings and repository that a brief shows; needs no model."""
    tables = [notes.outputs.get(Output(stage, project.project_id), "") for stage in ("link", "decay")]
    everywhere = notes.outputs.get(SHOWN_EVERYWHERE, "")
    return content_id(*tables, everywhere, policy.fingerprint, *beside_tables(settings, project))


def beside_tables(settings: Settings, project: KnownProject) -> tuple[str, str, str]:
    """Return what a brief follows from beside the tables: its budget, its project's name, the repository."""
    return str(brief_tokens(settings, project)), project.name, state_of(project.paths)


def brief_tokens(settings: Settings, project: KnownProject) -> int:
    """Return the budget of a project's brief as a person set it; 0 if nobody did."""
    if not settings.by_project:
        return settings.brief_tokens
    return settings.of_project(project.project_id, project.paths).brief_tokens
