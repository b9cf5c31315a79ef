"""What Cortex says is known again by fingerprint, so that an echo of it is never learnt (spec 4.4)."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from collections.abc import Iterator

    from cortex.hooks.evidence.lazy import lazy
    from cortex.hooks.evidence.text import LINE, latin_length, normalised, sentences
    from cortex.hooks.identity import content_id
else:
    from evidence.lazy import lazy
    from evidence.text import LINE, latin_length, normalised, sentences
    from identity import content_id

# Extraction takes nothing shorter (sentences.MIN_CHARS); "Yes, go on." is nobody's echo.
MIN_ECHO_CHARS = 24
# Half of the id's digits: with a million lines the chance of one collision is about 1e-7.
FINGERPRINT_DIGITS = 16

# What a line of a brief ends in: (user, 14 Sep 26), then perhaps a dispute. Older versions, the archive and
# hooks without an engine add session and confidence: (user, 14 Sep 26, 3f2a +2, .92), once with an ISO date.
# With neither a person's word nor a confidence only the short day counts: people write 14 Sep 2026.
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_SURE = r"(?:, [^\s(),]{1,8}(?: \+\d+)?)?, (?:sure )?(?:1|\.\d\d)"
# What a team's repository holds: (colleague Ana Lopez, reviewed, 14 Sep 26), (user, reviewed, 14 Sep 26).
_REVIEWED = r"(?:(?:[^(),\n]{1,80}, )?(?:reviewed|shared), )?"
PROVENANCE = lazy(
    rf"\s\((?:(?:user|assistant|tool|external), )?{_REVIEWED}(?:all projects, )?(?:\d{{4}}-\d\d-\d\d{_SURE}"
    rf"|\d{{1,2}} (?:{_MONTHS}) \d\d(?:{_SURE})?)\)(?: \[contradicted by .*\])?\s*$"
)
# The line below a result of `cortex recall`: kind, project, age, trust, id.
_SPEAKER = r"(?:user|assistant|tool|external|colleague|[^(),\n]{1,80} \((?:reviewed|shared)\))"
RECALL_SOURCE = lazy(rf"^\s*[a-z_]+, .+, {_SPEAKER}\s+\[[0-9a-f]{{12}}\]\s*$")
# Marks before a fact: quote, list, number, heading, a memory tag, a label such as "Noted:".
_LEAD = lazy(r"^(?:[\s>#*•-]+|\d{1,2}[.)]\s+|(?:\*\*)?\[MEMORY:[^\]]{0,40}\](?:\*\*)?)+", re.IGNORECASE)
_QUOTED = lazy(r"[\"“«„]([^\"”»“]{24,})[\"”»“]")
_QUOTED_WIDE = lazy("[「『]([^「」『』]{8,})[」』]")


def fingerprints_of(text: str) -> frozenset[str]:
    """
    Return the fingerprints of each sentence of `text`, line by line, without marks and provenance.

    Case, punctuation and markup do not matter; what is shorter than 24 characters has none.

    >>> fingerprints_of("- Keep all readings in UTC. (14 Sep 26, 3f2a, .92)") == fingerprints_of(
    ...     "keep **all readings** in UTC"
    ... )
    True
    """
    return frozenset(
        mark for line in text.split("\n") for part in marked_parts(line) for mark in marks_of(part)
    )


def marked_parts(line: str) -> list[str]:
    """Return the sentences of a line without its marks and provenance."""
    return sentences(_LEAD.sub("", PROVENANCE.sub("", line)), LINE)


def marks_of(sentence: str) -> Iterator[str]:
    """Yield the fingerprints by which a sentence is known: whole, behind its label, and what it quotes."""
    _, label, labelled = sentence.replace("：", ": ").partition(": ")
    for words in (
        sentence,
        labelled if label else "",
        *_QUOTED.findall(sentence),
        *_QUOTED_WIDE.findall(sentence),
    ):
        bare = normalised(words)
        if latin_length(bare) >= MIN_ECHO_CHARS:
            yield content_id("told", bare)[:FINGERPRINT_DIGITS]
