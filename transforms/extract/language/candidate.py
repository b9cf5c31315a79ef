"""A candidate: what one layer saw in a thread, on its way to EVENTS; and which extractor saw it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cortex.hooks.prose.memory_types import SETTLING_TYPES
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy

# -- What extraction depends on: its version and the policy rows it reads, as one fingerprint.

# Raise it when the same turns give other events than before: stored events are then extracted again.
EXTRACTOR_VERSION = 12


def extractor_fingerprint(policy: Policy) -> str:
    """Return a value that changes whenever the same turns may give other events."""
    return content_id(str(EXTRACTOR_VERSION), policy.derived(_rows_read))


def _rows_read(policy: Policy) -> str:
    return repr(policy.rows_read_by("extract"))


Turn = Mapping[str, Any]

# Ends of the layers that read what a person typed or chose.
PERSONS_LAYERS = (":user", ":choice")
AGREED = ":agreed"  # ends the layer of a proposal that a person took in a word
TAG_LAYER = "layer3:tag"
RECAP_LAYERS = ("layer1:recap", "layer1:summary")
# Kinds of turn in which a person speaks.
PERSON = frozenset(("prompt", "command", "rejection", "choice", "plan"))


@dataclass(frozen=True)
class Candidate:
    """One thing seen in a thread: what it rests on, what it says, and which source it has."""

    turn: Turn
    lines: tuple[int, ...]
    text: str
    event_type: str
    memory_type: str | None  # None: an event, and no memory of it
    layer: str
    source: str  # a row of confidences.csv
    trust: str
    reason: str | None = None
    rejected: str | None = None
    subject: str | None = None
    step_status: str | None = None
    files: tuple[str, ...] = ()
    git_commit: str | None = None
    # Place within what its turn says, from 0: the steps of one list carry one time.
    position: int = 0
    # How strong the markers of prose are; None: as sure as the source is.
    confidence: float | None = None


def line_of(turn: Turn) -> int:
    """Return the transcript line of a turn."""
    return int(turn["line"])


def text_of(turn: Turn) -> str:
    """Return the text of a turn."""
    return str(turn["text"] or "")


def is_prose_alone(layer: str, memory_type: str | None) -> bool:
    """
    Return whether nobody but the assistant said what an event says, or the client for it.

    Such an event is searched and quoted and is no memory. Of a person's words a request, a question and a
    report of a fault are none either: the session's record has the result.

    >>> is_prose_alone("layer2:en", "decision"), is_prose_alone("layer2:en:user", "decision")
    (True, False)
    """
    if layer in RECAP_LAYERS:
        return True
    if not layer.startswith("layer2:") or layer.endswith(AGREED):
        return False
    return not (layer.endswith(PERSONS_LAYERS) and memory_type in SETTLING_TYPES)
