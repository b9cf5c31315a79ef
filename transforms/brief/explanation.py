"""Why each candidate is in a brief or not, as published with the brief, and read from there."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cortex.transforms.brief.brief_sections import Choice
from cortex.transforms.redaction.redact import kinds_of_secret

EXPLANATION_VERSION = 1
LEFT_OUT_SHOWN = 40


@dataclass(frozen=True)
class BriefChoices:
    """
    The candidates that are shown and the best that are not, of `candidates` in all; doubts by memory id.

    `left_out` holds at most LEFT_OUT_SHOWN, by rank.
    """

    shown: Sequence[Choice]
    left_out: Sequence[Choice]
    candidates: int
    doubts: Mapping[str, str]


def brief_choices_of(choices: Sequence[Choice], doubts: Mapping[str, str]) -> BriefChoices:
    """Return what is said of a brief's candidates: all that are shown, and the best of those left out."""
    left_out = [choice for choice in choices if not choice.is_shown]
    best = sorted(left_out, key=lambda choice: (-choice.rank, choice.memory_id))[:LEFT_OUT_SHOWN]
    shown = [choice for choice in choices if choice.is_shown]
    named = {choice.memory_id for choice in (*shown, *best)}
    kept = {name: doubt for name, doubt in doubts.items() if name in named}
    return BriefChoices(shown, best, len(choices), kept)


def explanation_document(choices: BriefChoices) -> dict[str, object]:
    """Return what is published; a text of those left out with a secret in it is not."""
    left_out = [
        replace(choice, text="") if kinds_of_secret(choice.text) else choice for choice in choices.left_out
    ]
    return {
        "version": EXPLANATION_VERSION,
        "candidates": choices.candidates,
        "shown": [asdict(choice) for choice in choices.shown],
        "left_out": [asdict(choice) for choice in left_out],
        "doubts": dict(choices.doubts),
    }


def choices_in(document: object) -> BriefChoices | None:
    """Return what was published; None for a document of another version, or that is none."""
    if not isinstance(document, dict) or document.get("version") != EXPLANATION_VERSION:
        return None
    try:
        shown, left_out = ([_choice(each) for each in document[name]] for name in ("shown", "left_out"))
        return BriefChoices(shown, left_out, int(document["candidates"]), dict(document["doubts"]))
    except (KeyError, TypeError, ValueError):
        return None


def _choice(entry: Mapping[str, Any]) -> Choice:
    choice = Choice(**entry)
    texts = (choice.section, choice.memory_id, choice.text, choice.reason)
    if not all(isinstance(text, str) for text in texts) or not isinstance(choice.is_shown, bool):
        raise TypeError("not a choice")
    return replace(choice, rank=float(choice.rank))
