"""How one memory reads in a brief: the fact in a sentence or two, then who said it, when, where and how sure."""

import re
from datetime import datetime
from typing import Any

from cortex.transforms.framing import first_sentences, on_one_line

Row = dict[str, Any]  # one row of MEMORIES

_PLAN_PART = re.compile(r"(?:^|\s)(Plan|Done|Now|Next):\s+")
LIVING_PLAN = r"^Plan:\s.*\s(Now|Next):\s"  # understood by re and by Arrow's RE2 alike


def fact_forms(row: Row, fact_chars: int) -> tuple[str, ...]:
    """
    Return the fact as a list item, from full to short.

    Full: at most two sentences and `fact_chars` characters, then the reason and what was rejected where the
    sentences do not say them. Short: the first sentence.
    """
    text, tail = on_one_line(row["text"]), provenance(row)
    fact = first_sentences(text, count=2, chars=fact_chars)
    for label, told in (("Why", row["reason"]), ("Rejected", row["rejected"])):
        line = first_sentences(on_one_line(told or ""), count=1, chars=fact_chars // 2)
        if told and line.rstrip(".…").casefold() not in text.casefold():
            fact = f"{fact.rstrip('.')}. {label}: {line}"
    full = f"- {fact} {tail}"
    short = f"- {first_sentences(text, count=1, chars=fact_chars)} {tail}"
    return (full, short) if len(short) < len(full) else (full,)


def plan_forms(row: Row, fact_chars: int) -> tuple[str, ...]:
    """
    Return a living plan as a list item, from full to short.

    Full: the title, then a line each for the last step done, the step at hand and the next two. Short: the title
    and the step at hand.
    """
    told = dict(_plan_parts(on_one_line(row["text"])))
    title = first_sentences(told.get("Plan", "").rstrip(". "), count=1, chars=fact_chars)
    head = f"- {title} {provenance(row)}"
    lines = [
        _steps(label, told[label], fact_chars // 2) for label in ("Done", "Now", "Next") if told.get(label)
    ]
    at_hand = [line for line in lines if line.startswith("  - now:")] or lines[-1:]
    return ("\n".join([head, *lines]), "\n".join([head, *at_hand]))


def provenance(row: Row) -> str:
    """
    Return where a memory comes from: `(user, 2026-09-14, 3f2a91c0 +2, sure .92)`.

    "user" if the user said it, "all projects" if it holds everywhere, the day it was last said, the first eight
    digits of that session and how many more said it, the confidence now.
    """
    seen = [
        (found["said_at"], found["session_id"]) for found in row["evidence"] if found["said_at"] is not None
    ]
    said_at, session_id = max(seen, default=(row["updated_at"], ""))
    more = f" +{row['session_count'] - 1}" if row["session_count"] > 1 else ""
    parts = ["user"] if row["trust"] == "user" else []
    parts += ["all projects"] if row["category"] == "global" else []
    parts += [day(said_at)]
    parts += [on_one_line(session_id)[:8] + more] if session_id else []
    return f"({', '.join(parts)}, sure {fraction(row['confidence'])})"


def day(when: datetime) -> str:
    """Return the day of an instant, in UTC as it is stored."""
    return f"{when:%Y-%m-%d}"


def fraction(value: float) -> str:
    """
    Return a fraction of 0 to 1 in two digits.

    >>> fraction(0.918), fraction(1.0)
    ('.92', '1')
    """
    return f"{value:.2f}".removeprefix("0") if value < 0.995 else "1"


def _plan_parts(text: str) -> list[tuple[str, str]]:
    parts = _PLAN_PART.split(text)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _steps(label: str, told: str, chars: int) -> str:
    """Return one line for the steps of a plan that are done (the last), at hand, or next (two at most)."""
    steps = [step.strip(" .") for step in told.split(";") if step.strip(" .")]
    shown = steps[-1:] if label == "Done" else steps[:2]
    line = "; ".join(first_sentences(step, count=1, chars=chars) for step in shown)
    if label == "Done" and len(steps) > 1:
        return f"  - done: {len(steps)} steps, last: {line}"
    more = f"; then {len(steps) - 2} more" if len(steps) > 2 else ""
    return f"  - {label.lower()}: {line}{more}"
