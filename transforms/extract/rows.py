"""An event row from a candidate: its id, category and provenance."""

from cortex.transforms.extract.candidate import Candidate
from cortex.transforms.extract.dialogue import ANSWER
from cortex.transforms.extract.phrases import FILE, GLOBAL_WISH
from cortex.transforms.extract.signals import IDENTIFIER
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy

# Raise it when the same turns give other events than before: stored events are then made anew.
EXTRACTOR_VERSION = 3


def event_row(candidate: Candidate, confidence: float, policy: Policy) -> dict[str, object]:
    """Return the row of EVENTS for a candidate, with the confidence it was given."""
    turn = candidate.turn
    return {
        "event_id": content_id(
            "event", candidate.event_type, candidate.layer, str(turn["turn_id"]), candidate.text
        ),
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
        "said_at": turn["said_at"],
        "git_branch": turn["git_branch"],
        "git_commit": candidate.git_commit,
        "extractor_version": EXTRACTOR_VERSION,
    }


def category(candidate: Candidate, policy: Policy) -> str:
    """
    Return `global` only for a person's wish about their way of working that names nothing of the project.

    A wrong `global` follows the person into every project, a wrong `project` is only missed there.
    """
    said = candidate.turn["kind"]  # an approved plan is the assistant's wording
    is_wish = candidate.event_type == "PREFERENCE_NOTED" and said in ("prompt", "command", "rejection")
    words = candidate.text.split(ANSWER)[0]
    is_tied = bool(IDENTIFIER.search(words) or FILE.search(words) or names_technology(words, policy))
    return "global" if is_wish and GLOBAL_WISH.search(words) and not is_tied else "project"


def names_technology(text: str, policy: Policy) -> bool:
    """Return whether a text names a tool, language or service of technologies.csv."""
    words = {word.strip(".,:;!?()`\"'").lower() for word in text.split()}
    return any(row["term"] in words for row in policy.tables["technologies"].to_pylist())
