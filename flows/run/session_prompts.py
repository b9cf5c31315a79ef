"""Which version of the instruction for sessions counts in a project, and which one reads new sessions."""

from collections.abc import Iterable
from dataclasses import replace

from cortex.flows.run.run import Run
from cortex.storage.lake.notes import ManifestNotes, PromptChoice
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import REPLIES
from cortex.transforms.writer.prompt import SESSION_PROMPT, version_of

# A choice for all projects is noted under this name; one for a project goes before it.
EVERY_SCOPE = "all"


def shipped_prompts() -> list[str]:
    """Return the versions that come with this release, the newest first."""
    name = SESSION_PROMPT.partition("@")[0]
    return [f"{name}@{number}" for number in range(version_of(SESSION_PROMPT), 0, -1)]


def check_prompt(name: str) -> str:
    """Return `name`. Raises UsageError if no such version comes with this release."""
    shipped = shipped_prompts()
    if name not in shipped:
        raise UsageError(f"There is no version {name}.", f"Name one of: {', '.join(shipped)}.")
    return name


def prompt_in_force(run: Run, project_id: str) -> str:
    """
    Return the version whose facts count of sessions that several have read; empty if none was chosen.

    Then what was read first counts: a second reading is a proposal until a person promotes it.
    """
    choice = _choice(run.store.lake.notes, project_id)
    return choice.chosen if choice else ""


def prompt_to_ask(run: Run, project_id: str) -> str:
    """
    Return the version that reads new sessions of a project: the chosen one.

    One that was released after the choice is used for what is new, since no person has decided against it.
    """
    choice = _choice(run.store.lake.notes, project_id)
    return choice.chosen if choice and choice.newest == SESSION_PROMPT else SESSION_PROMPT


def prompts_to_show(run: Run, prompt: str | None) -> dict[str, str]:
    """Return, by project with replies, what a re-derivation shows: `prompt`, else the one to ask."""
    projects = run.store.lake.manifest.partitions(REPLIES.name) if run.settings.models.uses_replies else ()
    return {project_id: prompt or prompt_to_ask(run, project_id) for project_id in projects}


def with_everywhere(notes: ManifestNotes, prompt: str) -> ManifestNotes:
    """Return the notes once a person has chosen a version for all projects, those to come among them."""
    return replace(notes, prompts={EVERY_SCOPE: PromptChoice(prompt, SESSION_PROMPT)})


def with_chosen(notes: ManifestNotes, projects: Iterable[str], prompt: str) -> ManifestNotes:
    """Return the notes once a person has chosen a version for `projects`."""
    choice = PromptChoice(prompt, SESSION_PROMPT)
    return replace(notes, prompts={**notes.prompts, **dict.fromkeys(projects, choice)})


def _choice(notes: ManifestNotes, project_id: str) -> PromptChoice | None:
    return notes.prompts.get(project_id) or notes.prompts.get(EVERY_SCOPE)
