"""An event row from a candidate: its id, category and provenance."""

from datetime import datetime, timedelta

from cortex.transforms.extract.candidate import TAG_LAYER, Candidate
from cortex.transforms.extract.extractor import EXTRACTOR_VERSION
from cortex.transforms.extract.phrases import FILE, Phrasebook
from cortex.transforms.extract.signals import IDENTIFIER
from cortex.transforms.extract.technologies import tag_by_term, technology_tags
from cortex.transforms.identity import event_id
from cortex.transforms.policy import Policy


def event_row(candidate: Candidate, confidence: float, policy: Policy) -> dict[str, object]:
    """Return the row of EVENTS for a candidate, with the confidence it was given."""
    turn = candidate.turn
    return {
        "event_id": event_id(candidate.event_type, candidate.layer, str(turn["turn_id"]), candidate.text),
        "project_id": turn["project_id"],
        "session_id": turn["session_id"],
        "event_type": candidate.event_type,
        "memory_type": candidate.memory_type,
        "category": category(candidate, policy),
        "text": candidate.text,
        "reason": candidate.reason,
        "rejected": candidate.rejected,
        "subject": candidate.subject,
        "step_status": candidate.step_status,
        "files": list(candidate.files),
        "confidence": confidence,
        "salience": policy.salience(candidate.event_type),
        "trust": candidate.trust,
        "layer": candidate.layer,
        "turn_id": turn["turn_id"],
        "file": turn["file"],
        "lines": list(dict.fromkeys(candidate.lines)),
        "said_at": _spoken_at(candidate),
        "git_branch": turn["git_branch"],
        "git_commit": candidate.git_commit,
        "extractor_version": EXTRACTOR_VERSION,
    }


def _spoken_at(candidate: Candidate) -> datetime | None:
    """Return when a candidate was said; of things said in one breath each a microsecond after the last."""
    said_at: datetime | None = candidate.turn["said_at"]
    return said_at and said_at + timedelta(microseconds=candidate.position)


def category(candidate: Candidate, policy: Policy) -> str:
    """
    Return `global` only for a wish about a person's way of working that is not tied to the project.

    A wish that names every project is global whatever it speaks of. Others are tied by what they name of code
    or tools: a wrong `global` follows the person into every project, a wrong `project` is only missed there.
    """
    kind = candidate.turn["kind"]  # an approved plan is the assistant's wording
    is_persons = kind in ("prompt", "command", "rejection")
    is_tag = candidate.layer == TAG_LAYER
    if candidate.event_type != "PREFERENCE_NOTED" or not (is_persons or is_tag):
        return "project"
    words = candidate.text
    phrases = Phrasebook.of(policy)
    if phrases.everywhere.search(words):
        return "global"
    is_tied = bool(
        IDENTIFIER.search(words) or FILE.search(words) or technology_tags(words, tag_by_term(policy))
    )
    is_tied = is_tied or bool(phrases.of_this_project.search(words))
    return "global" if (is_tag or phrases.global_preference.search(words)) and not is_tied else "project"
