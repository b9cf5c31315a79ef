"""The hook index of a project: what may be brought up at a prompt of its next sessions."""

from cortex.flows.briefs import Draft
from cortex.flows.run import Run
from cortex.storage.hook_index import fingerprint_of
from cortex.transforms.brief.hook_index import Note, notes_of, settings_of, stop_words_of


def publish_notes(run: Run, project_id: str, draft: Draft) -> bool:
    """Publish the hook index as the tables say it now; return whether it differs from the last one."""
    notes = notes_at_prompts(run, draft)
    settings, stop_words = settings_of(run.policy), stop_words_of(run.policy)
    return run.store.published.publish_hook_index(project_id, notes, settings, stop_words)


def notes_fingerprint(run: Run, draft: Draft) -> str:
    """Return the fingerprint that the hook index would have now; empty without notes."""
    notes = notes_at_prompts(run, draft)
    return fingerprint_of(notes, settings_of(run.policy), stop_words_of(run.policy)) if notes else ""


def notes_at_prompts(run: Run, draft: Draft) -> list[Note]:
    """Return the notes of a project and the global ones, each with the line by which the brief tells it."""
    material = draft.material
    choices = [choice for choice in draft.choices if choice.is_shown and choice.memory_id]
    brief_lines = {choice.memory_id: choice.text.split("\n")[0] for choice in choices}
    return notes_of(material.memories, run.policy, marks=material.marks, brief_lines=brief_lines)
