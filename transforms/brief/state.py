"""Where the work stands: how the outcome record of a session reads in a brief (spec 11.2)."""

import re
from collections.abc import Mapping

from cortex.hooks.evidence.statements import outcome_parts
from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.brief.wording import provenance
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row
from cortex.transforms.words.self_contained import brief_wording, reason_not_alone

# A check that passes says nothing without what was worked on.
_CHECK = re.compile(r"^[`\w., /:-]+(?:`| ) ?(?:pass(?:es|ed)?|is clean|succeeds?)$")
_FILE_LABEL = re.compile(r"^`?[\w./~-]+\.\w{1,5}`?(?: \(\w+\))? [–—-] \w[^`.;]{0,60}$")
_SPOKEN = re.compile(
    r"\b(?:let me know|(?:now )?try (?:again|it|building|running)|open the (?:console|page)|remember to)\b",
    re.IGNORECASE,
)
_SPOKEN_ASIDE = re.compile(r" \([^()]*\b(?:you|I)\b[^()]*\)")
_YOUR = re.compile(r"\byour\b", re.IGNORECASE)


def outcome_forms(row: Row, policy: Policy, *, with_goal: bool = False) -> tuple[str, ...]:
    """
    Return an outcome record as a list item, from full to short; nothing if none of it stands alone.

    Full: what was reached, and below it what is open. Short: what is open, else the first that was reached.
    What was asked for is left out, unless it is wanted `with_goal`: a model's record says how it ended,
    one by rules only which files changed, which commits were made and which checks passed.
    """
    text, tail = on_one_line(row["text"]), provenance(row)
    parts = outcome_parts(text) or {"outcome": text.rstrip(" .")}
    reached = _statements(parts.get("outcome", ""), policy)
    # Of a record whose valid time has an end everything that was open is settled.
    left = "" if row.get("valid_until") else parts.get("open", "")
    still_open = [_of_the_user(part.strip()) for part in left.split("; ")]
    still_open = [part for part in still_open if part.strip(" .") and not _is_spoken(part)]
    if with_goal and (goal := _goal(parts, policy)):
        reached = [f"asked: {goal}", *reached]
    elif reached and all(_CHECK.match(part) for part in reached) and (goal := _goal(parts, policy)):
        reached = [f"worked on: {goal}", *reached]
    if not reached and not still_open:
        return ()
    if not still_open:
        return tuple(dict.fromkeys((_item(reached, tail), _item(reached[:1], tail))))
    named = "; ".join(still_open)
    alone = f"- Open: {named}. {tail}"
    return (f"{_item(reached, tail)}\n  - open: {named}", alone) if reached else (alone,)


def _statements(text: str, policy: Policy) -> list[str]:
    parts = [brief_wording(part.strip(), policy) for part in text.split("; ") if part.strip()]
    return [part for part in parts if not reason_not_alone(part, policy) and not _is_fragment(part)]


def _is_fragment(part: str) -> bool:
    """Return whether a part of a report is one only together with the others: "tide.py - Full version"."""
    return bool(_FILE_LABEL.match(part))


def _is_spoken(part: str) -> bool:
    """Return whether an open point is cut, or was said to the person of that day."""
    return bool(_SPOKEN.search(part)) or part.endswith(("!", "…"))


def _of_the_user(part: str) -> str:
    return _YOUR.sub("the user's", _SPOKEN_ASIDE.sub("", part))


def _goal(parts: Mapping[str, str], policy: Policy) -> str:
    """Return what a session was for, if that can be read alone."""
    goal = brief_wording(parts.get("goal", ""), policy)
    is_whole = goal and not goal.endswith("…") and not reason_not_alone(goal, policy)
    return goal[:1].lower() + goal[1:] if is_whole and goal[1:2].islower() else goal if is_whole else ""


def _item(statements: list[str], tail: str) -> str:
    text = "; ".join(statements)
    text = text[:1].upper() + text[1:] if text[:8].isalpha() else text
    return f"- {text if text.endswith(('.', '!', '。')) else f'{text}.'} {tail}"
