"""The answer about a session as values: what its JSON says, whatever its shape. Nothing is believed yet."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cortex.hooks.prose.memory_types import MEMORY_TAGS, WRITTEN_TAGS

# Event and memory type of each type of fact that is asked for.
FACT_KINDS = {tag: MEMORY_TAGS[tag] for tag in WRITTEN_TAGS}
STATES = ("holds", "open", "done", "taken_back")
# What a fact says of itself where only the assistant claims it.
UNCHECKED = "by the assistant's account, not checked"
# More text than any field may hold: a field of megabytes is cut before it is looked at.
FIELD_CHARS = 2_000
ITEMS_READ = 50


@dataclass(frozen=True)
class WrittenOutcome:
    """
    What the session came to, in the model's words; empty parts where it says nothing.

    `has_worked` says whether anything was done in earnest; None where the instruction did not ask.
    """

    goal: str = ""
    outcome: str = ""
    proved: str = ""
    still_open: str = ""
    has_worked: bool | None = None


@dataclass(frozen=True)
class WrittenFact:
    """One fact as the model wrote it; turns and memories are named as the request named them."""

    statement: str
    why: str
    instead_of: str
    fact_type: str
    scope: str
    scope_confidence: float
    state: str
    support: str
    quote: str
    turns: tuple[str, ...]
    closes: tuple[str, ...]
    confidence: float
    caveat: str = ""
    subject: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class SessionAnswer:
    """The outcome record and the facts of one answer, the facts in the model's order."""

    outcome: WrittenOutcome
    facts: tuple[WrittenFact, ...]


def parsed_answer(text: str) -> SessionAnswer | None:
    """
    Return what the text of an answer says, None where it is not the JSON object that was asked for.

    Fields that are missing or of another kind are empty: what needs them is refused later, not the rest.

    >>> parsed_answer('{"outcome": {"goal": "Keep tides"}, "facts": []}').outcome.goal
    'Keep tides'
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not isinstance(given.get("facts"), list):
        return None
    outcome = given.get("outcome")
    parts = outcome if isinstance(outcome, dict) else {}
    return SessionAnswer(
        WrittenOutcome(
            goal=_text(parts, "goal"),
            outcome=_text(parts, "outcome"),
            proved=_text(parts, "proved"),
            still_open=_text(parts, "open"),
            has_worked=worked if isinstance(worked := parts.get("worked"), bool) else None,
        ),
        tuple(_fact(fact) for fact in given["facts"][:ITEMS_READ] if isinstance(fact, dict)),
    )


def _fact(given: Mapping[str, Any]) -> WrittenFact:
    # The first instruction had no field for it: there the statement says so itself.
    is_unchecked = "caveat" in given and given.get("support") == "claimed"
    return WrittenFact(
        statement=_text(given, "statement"),
        why=_text(given, "why"),
        instead_of=_text(given, "instead_of"),
        fact_type=_text(given, "type"),
        scope=_text(given, "scope"),
        scope_confidence=_share(given, "scope_confidence"),
        state=_text(given, "state"),
        support=_text(given, "support"),
        quote=_text(given, "quote"),
        turns=_texts(given, "turns"),
        closes=_texts(given, "closes"),
        confidence=_share(given, "confidence"),
        caveat=_text(given, "caveat") or (UNCHECKED if is_unchecked else ""),
        subject=_text(given, "subject"),
        summary=_text(given, "summary"),
        tags=_texts(given, "tags"),
    )


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return " ".join(value[:FIELD_CHARS].split()) if isinstance(value, str) else ""


def _texts(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = given.get(name)
    items = value[:ITEMS_READ] if isinstance(value, list) else []
    return tuple(item.strip(" []") for item in items if isinstance(item, str))


def _share(given: Mapping[str, Any], name: str) -> float:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return min(1.0, max(0.0, float(value)))
