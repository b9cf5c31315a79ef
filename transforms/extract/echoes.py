"""What Cortex said itself: known again by fingerprint, so that an echo of it is never learnt (spec 4.4)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa

from cortex.transforms.identity import content_id
from cortex.transforms.schemas import TURNS, values
from cortex.transforms.words.normalised import normalised
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import LINE, sentences

# From when to when a line was told; None: it still is.
Span = tuple[datetime, datetime | None]

# Kinds of turn that prose is learnt from.
ECHOING_KINDS = frozenset({"prompt", "command", "rejection", "choice", "plan", "text"})
# Extraction takes nothing shorter (sentences.SHORTEST_CHARS); "Yes, go on." is nobody's echo.
_SHORTEST_CHARS = 24
# Half of the id's digits: with a million lines the chance of one collision is about 1e-7.
FINGERPRINT_DIGITS = 16

# What a line of a brief ends in: (user, 14 Sep 26), then perhaps a dispute. Older versions, the archive and
# hooks without an engine add session and confidence: (user, 14 Sep 26, 3f2a +2, .92), once with an ISO date.
# With neither a person's word nor a confidence only the short day counts: people write 14 Sep 2026.
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_SURE = r"(?:, [^\s(),]{1,8}(?: \+\d+)?)?, (?:sure )?(?:1|\.\d\d)"
# What a team's repository holds: (Ana Lopez, reviewed, 14 Sep 26), (user, reviewed, 14 Sep 26).
_REVIEWED = r"(?:(?:[^(),\n]{1,66}, )?(?:reviewed|shared), )?"
PROVENANCE = re.compile(
    rf"\s\((?:user, )?{_REVIEWED}(?:all projects, )?(?:\d{{4}}-\d\d-\d\d{_SURE}"
    rf"|\d{{1,2}} (?:{_MONTHS}) \d\d(?:{_SURE})?)\)(?: \[contradicted by .*\])?\s*$"
)
# The line below a result of `cortex recall`: kind, project, age, trust, id.
_SPEAKER = r"(?:user|assistant|tool|external|colleague|[^(),\n]{1,66} \((?:reviewed|shared)\))"
RECALL_SOURCE = re.compile(rf"^\s*[a-z_]+, .+, {_SPEAKER}\s+\[[0-9a-f]{{12}}\]\s*$")
# Marks before a fact: quote, list, number, heading, a memory tag, a label such as "Noted:".
_LEAD = re.compile(r"^(?:[\s>#*•-]+|\d{1,2}[.)]\s+|(?:\*\*)?\[MEMORY:[^\]]{0,40}\](?:\*\*)?)+", re.IGNORECASE)
# A step ticked off is news, though the plan was told.
STEP = re.compile(r"^\s*[-*]\s+\[[ xX]\]")
_QUOTED = re.compile(r"[\"“«„]([^\"”»“]{24,})[\"”»“]")
_QUOTED_WIDE = re.compile("[「『]([^「」『』]{8,})[」』]")


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


def fingerprints_of(text: str) -> frozenset[str]:
    """
    Return the fingerprints of each sentence of `text`, line by line, without marks and provenance.

    Case, punctuation and markup do not matter; what is shorter than 24 characters has none.

    >>> fingerprints_of("- Keep all readings in UTC. (14 Sep 26, 3f2a, .92)") == fingerprints_of(
    ...     "keep **all readings** in UTC"
    ... )
    True
    """
    return frozenset(mark for line in text.split("\n") for part in _parts(line) for mark in _marks(part))


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
        return any(mark in pasted or shown.covers(mark, at) for mark in _marks(part))

    kept = []
    for line in text.split("\n"):
        if PROVENANCE.search(line) or RECALL_SOURCE.match(line):
            continue
        parts = [] if STEP.match(line) else _parts(line)
        left = [part for part in parts if not is_echo(part)]
        if len(left) == len(parts):
            kept.append(line)
        elif latin_length(" ".join(left)) >= _SHORTEST_CHARS:
            kept.append(" ".join(left))
    return "\n".join(kept)


def _parts(line: str) -> list[str]:
    """Return the sentences of a line without its marks and provenance."""
    return sentences(_LEAD.sub("", PROVENANCE.sub("", line)), LINE)


def _marks(sentence: str) -> Iterator[str]:
    """Yield the fingerprints by which a sentence is known: whole, behind its label, and what it quotes."""
    _, label, labelled = sentence.replace("：", ": ").partition(": ")
    for words in (
        sentence,
        labelled if label else "",
        *_QUOTED.findall(sentence),
        *_QUOTED_WIDE.findall(sentence),
    ):
        bare = normalised(words)
        if latin_length(bare) >= _SHORTEST_CHARS:
            yield content_id("told", bare)[:FINGERPRINT_DIGITS]
