"""A candidate: something a layer saw that may become an event, before the session's budget is shared out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Turn = Mapping[str, Any]

# Ends of the layers that read what a person typed or chose.
PERSONS_LAYERS = (":user", ":choice")
TAG_LAYER = "layer3:tag"


@dataclass(frozen=True)
class Candidate:
    """One fact seen in a thread: what it rests on, what it says, and the signals its score adds up."""

    turn: Turn
    lines: tuple[int, ...]
    text: str
    event_type: str
    memory_type: str | None
    layer: str
    signals: Mapping[str, float]
    trust: str
    reason: str | None = None
    rejected: str | None = None
    subject: str | None = None
    step_status: str | None = None
    files: tuple[str, ...] = ()
    git_commit: str | None = None
    # Place within what its turn says, from 0: the steps of one list carry one time.
    position: int = 0
    # Line of the turn that takes it back, refutes, mends or replaces it: never shown as valid.
    overturned_at: int | None = None
    # Structure and tags are sure of themselves; prose is as sure as its score says.
    confidence: float | None = field(default=None)


def line_of(turn: Turn) -> int:
    """Return the transcript line of a turn."""
    return int(turn["line"])


def text_of(turn: Turn) -> str:
    """Return the text of a turn."""
    return str(turn["text"] or "")
