"""Whether a line can be read without its session, and the rewording that lets it (spec 11.2)."""

import re
from collections.abc import Iterable
from functools import lru_cache

from cortex.transforms.policy import Policy

_MARK_ALONE = re.compile(r"\([^()]*\)\.?$")  # "(since changed)", parted from what was changed
_QUESTION = re.compile(r"[?？][\"'”’)]*$")
_MARK = re.compile(r"[`*\"'“”‘’(\s]+")
# The answer to a question that was put with options; question and choice are read together.
_ANSWERED = re.compile(r"[?？].* User chose\b|^For [^:]{3,120}: ")
# Joins what one said to what the other answered; between names of code it is an arrow.
_GLUE = re.compile(r"[.!?…)] → ")


def brief_wording(text: str, policy: Policy) -> str:
    """Return a statement without words that tie it to the talk it was part of; at least half of it stays."""
    for pattern, replacement in _patterns(policy, "reword"):
        shorter = pattern.sub(replacement, text, count=1)
        if shorter != text and 2 * len(shorter) >= len(text):
            text = shorter[:1].upper() + shorter[1:] if shorter[:1].isascii() else shorter
    return text


def reason_not_alone(text: str, policy: Policy, *, is_persons: bool = False) -> str:
    """
    Return why a statement says nothing to one who was not there, or nothing if it stands alone.

    What an assistant was about to do is over; a person (`is_persons`) who says "I prefer" states a wish.
    """
    bare = _MARK.sub(" ", text, count=1).strip() if _MARK.match(text) else text
    if not bare or bare.endswith(":") or _MARK_ALONE.match(text):
        return "a heading without what it heads"
    if text.endswith(("…", "...")):
        return "cut off in the middle of a statement"
    if _QUESTION.search(bare):
        return "a question without its answer"
    if _ANSWERED.search(bare):
        return ""
    if _GLUE.search(bare):
        return "two speakers' words glued together"
    if any(pattern.match(bare) for pattern, _ in _patterns(policy, "leans")):
        return f"leans on what was said before it: opens with “{_opening(bare)}”"
    if not is_persons and any(pattern.match(bare) for pattern, _ in _patterns(policy, "speaks")):
        return f"talk of the session: opens with “{_opening(bare)}”"
    if not is_persons and any(pattern.search(bare) for pattern, _ in _patterns(policy, "talks")):
        return "tells what the assistant was about to do"
    return ""


def _opening(text: str) -> str:
    return " ".join(text.split()[:2])[:24]


def _patterns(policy: Policy, use: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = policy.rows["brief_wording"].values()
    used = ((row["pattern"], row["replacement"] or "") for row in rows if row["use"] == use)
    return _compiled(tuple((str(pattern), str(replacement)) for pattern, replacement in used))


@lru_cache(maxsize=16)
def _compiled(rows: Iterable[tuple[str, str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in rows)
