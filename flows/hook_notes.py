"""The hook index of a project: what may be brought up at a prompt of its next sessions."""

from cortex.flows.briefs import Draft
from cortex.flows.run import Run
from cortex.storage.hook_index import IndexBasis, basis_of
from cortex.transforms.brief.hook_index import Note, notes_of, notes_wording, settings_of, stop_words_of


def publish_notes(run: Run, project_id: str, draft: Draft) -> bool:
    """Publish the hook index as the tables say it now; return whether it differs from the last one."""
    settings, stop_words = settings_of(run.policy), stop_words_of(run.policy)
    return run.store.published.publish_hook_index(
        project_id, lambda: notes_at_prompts(run, draft), settings, stop_words, _state(run, draft)
    )


def notes_state(run: Run, draft: Draft) -> IndexBasis | None:
    """Return what the hook index would be made from now; None without notes."""
    return _state(run, draft) if notes_at_prompts(run, draft) else None


def notes_at_prompts(run: Run, draft: Draft) -> list[Note]:
    """Return the notes of a project and the global ones, each with the line by which the brief tells it."""
    material = draft.material
    return notes_of(material.memories, run.policy, marks=material.marks, brief_lines=_brief_lines(draft))


def _state(run: Run, draft: Draft) -> IndexBasis:
    words = notes_wording(draft.material.memories, run.policy, draft.material.marks)
    return basis_of(words, _brief_lines(draft), settings_of(run.policy), stop_words_of(run.policy))


def _brief_lines(draft: Draft) -> dict[str, str]:
    choices = [choice for choice in draft.choices if choice.is_shown and choice.memory_id]
    return {choice.memory_id: choice.text.split("\n")[0] for choice in choices}
