"""Layer 3: `[MEMORY: type] text` lines, by which the assistant reports a memory itself (spec 5.3)."""

import re
from collections.abc import Iterator, Sequence

from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.sentences import FENCE, LONGEST_CHARS, plain, shortened

# A tag opens its line; inside a sentence or in backticks it is being talked about.
TAG = re.compile(r"^\s*(?:[-*•]\s+)?(?:\*\*)?\[MEMORY:\s*([^\]\n]{0,40})\](?:\*\*)?\s*(.*)$", re.IGNORECASE)
PLACEHOLDER = re.compile(
    r"^(?:\.{2,}|…|<[^>]*>|\{[^}]*\}|\[[^\]]*\]|text|your text|description|what .*\?)?[.…]*$", re.IGNORECASE
)
UNKNOWN_TYPE_CONFIDENCE = 0.3  # kept for a look, never shown: no type is guessed

MEANINGS = {
    "decision": ("DECISION_MADE", "decision"),
    "rejected": ("APPROACH_REJECTED", "decision"),
    "learned": ("KNOWLEDGE_ACQUIRED", "context"),
    "plan": ("PLAN_CREATED", "progress"),
    "progress": ("TASK_COMPLETED", "progress"),
    "error": ("ERROR_RESOLVED", "gotcha"),
    "gotcha": ("KNOWLEDGE_ACQUIRED", "gotcha"),
    "preference": ("PREFERENCE_NOTED", "pattern"),
    "architecture": ("KNOWLEDGE_ACQUIRED", "architecture"),
    "pattern": ("KNOWLEDGE_ACQUIRED", "pattern"),
    "context": ("KNOWLEDGE_ACQUIRED", "context"),
}


def tag_candidates(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """Yield the tags of the assistant's own words, each with confidence 1, the unknown ones below .5."""
    for turn in turns:
        if turn["kind"] == "text" and "[memory:" in text_of(turn).lower():
            for name, told in tags_in(text_of(turn)):
                yield _tagged(turn, name, told)


def tags_in(text: str) -> Iterator[tuple[str, str]]:
    """
    Yield (type, text) of each tag line outside code fences; placeholders of an explanation are left out.

    >>> list(tags_in("[MEMORY: decision] Use SQLite.\\n```\\n[MEMORY: plan] no\\n```\\n[MEMORY: type] ..."))
    [('decision', 'Use SQLite.')]
    """
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
            continue
        tag = None if fence else TAG.match(line)
        if tag and not PLACEHOLDER.match(tag[2].strip()):
            yield tag[1].strip().lower(), plain(tag[2])


def without_tags(text: str) -> str:
    """Return `text` without its tag lines, which are not prose any more."""
    if "[memory:" not in text.lower():
        return text
    return "\n".join(line for line in text.split("\n") if not TAG.match(line))


def _tagged(turn: Turn, name: str, told: str) -> Candidate:
    known = name in MEANINGS
    event_type, memory_type = MEANINGS.get(name, ("KNOWLEDGE_ACQUIRED", "context"))
    text = told if known else f"[unknown memory type '{name}'] {told}"
    return Candidate(
        turn, (line_of(turn),), shortened(text, LONGEST_CHARS), event_type, memory_type, "layer3:tag", {},
        "assistant", confidence=1.0 if known else UNKNOWN_TYPE_CONFIDENCE,
    )  # fmt: skip
