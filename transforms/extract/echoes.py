"""What Cortex said itself: known again by fingerprint, so that an echo of it is never learnt (spec 4.4)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa

from cortex.hooks.echo import (
    PROVENANCE,
    RECALL_SOURCE,
    SHORTEST_ECHO_CHARS,
    fingerprints_of,
    marked_parts,
    marks_of,
)
from cortex.transforms.schemas import TURNS, values
from cortex.transforms.words.scripts import latin_length

# From when to when a line was told; None: it still is.
Span = tuple[datetime, datetime | None]

# Kinds of turn that prose is learnt from.
ECHOING_KINDS = frozenset({"prompt", "command", "rejection", "choice", "plan", "text"})
# A step ticked off is news, though the plan was told.
STEP = re.compile(r"^\s*[-*]\s+\[[ xX]\]")


@dataclass(frozen=True)
class ShownLines:
    """The fingerprints that a project was told, each with its spans; what is said within `grace` echoes."""

    spans: Mapping[str, Iterable[Span]] = field(default_factory=dict)
    grace: timedelta = timedelta(0)

    def covers(self, fingerprint: str, at: datetime | None) -> bool:
        """Return whether a line said at `at` echoes what was told; one that nobody dated does."""
        return any(
            at is None or (first <= at and (until is None or at <= until + self.grace))
            for first, until in self.spans.get(fingerprint, ())
        )


def without_echoes(turns: pa.Table, shown: ShownLines) -> pa.Table:
    """
    Return TURNS without the sentences that repeat what Cortex said; rows and their order stay.

    Echoes are sentences in `shown` at their time, lines in the shape of a brief or of a recall's answer, and
    what repeats such lines later in the same session. A turn of nothing else is left with no text.
    """
    texts = values(turns, "text")
    if not shown.spans and not any(_has_shape(text) for text in texts):
        return turns
    rows = turns.select(["session_id", "file", "line", "block", "kind", "said_at"]).to_pylist()
    order = sorted(range(len(rows)), key=lambda at: _place(rows[at]))
    pasted: dict[str, set[str]] = {}
    for at in order:
        if rows[at]["kind"] in ECHOING_KINDS and texts[at]:
            seen = pasted.setdefault(rows[at]["session_id"], set())
            seen |= _shaped(texts[at])
            texts[at] = _without(texts[at], shown, rows[at]["said_at"], seen)
    position = turns.schema.get_field_index("text")
    return turns.set_column(position, TURNS.arrow.field("text"), pa.array(texts, pa.string()))


def _place(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["file"], row["line"], row["block"]


def _has_shape(text: str) -> bool:
    # Cheap signs first: millions of lines have neither.
    if ")" in text and any(PROVENANCE.search(line) for line in text.split("\n") if ")" in line[-240:]):
        return True
    return "]" in text and any(RECALL_SOURCE.match(line) for line in text.split("\n"))


def _shaped(text: str) -> frozenset[str]:
    """Return the fingerprints of the lines that look like a brief's or a recall's."""
    lines = text.split("\n")
    shaped = [line for line in lines if PROVENANCE.search(line)]
    shaped += [line for line, source in pairwise(lines) if RECALL_SOURCE.match(source)]
    return fingerprints_of("\n".join(shaped))


def _without(text: str, shown: ShownLines, at: datetime | None, pasted: set[str]) -> str:
    def is_echo(part: str) -> bool:
        return any(mark in pasted or shown.covers(mark, at) for mark in marks_of(part))

    kept = []
    for line in text.split("\n"):
        if PROVENANCE.search(line) or RECALL_SOURCE.match(line):
            continue
        parts = [] if STEP.match(line) else marked_parts(line)
        left = [part for part in parts if not is_echo(part)]
        if len(left) == len(parts):
            kept.append(line)
        elif latin_length(" ".join(left)) >= SHORTEST_ECHO_CHARS:
            kept.append(" ".join(left))
    return "\n".join(kept)
