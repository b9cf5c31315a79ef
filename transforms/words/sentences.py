"""Where sentences end, and texts cut there: one function, and a rule for each kind of text."""

import re
from dataclasses import dataclass

from cortex.hooks.plain import closed


@dataclass(frozen=True)
class SentenceRule:
    """What parts two sentences: a match of `end`, unless `goes_on` matches what stands before it."""

    end: re.Pattern[str]
    goes_on: re.Pattern[str] | None = None
    keeps_closing: bool = True  # quotation marks and brackets between the full stop and the space


# One line of a brief: a full stop, then what a sentence begins with; not after "e.g.".
LINE = SentenceRule(
    re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<=[.!?])[\"'”’)`]*\s+(?=[\"'“‘(`]*[^\Wa-z_]|→)"),
)
# What is said in a session: only before a space and a capital, digit, quote or backtick.
PROSE = SentenceRule(
    re.compile(r"(?<=[.!?。])[\"'”’)`]*\s+(?=[\"'“‘(`*]*[A-Z0-9가-힣`/_.-])|(?<=다\.)\s+|(?<=[.!?]\*\*)\s+"),
    re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|al)\.|\b[A-Z]\.|^\d+\.)$", re.IGNORECASE),
    keeps_closing=False,
)
# A memory's text, whose parts are compared or taken out one by one.
MEMORY = SentenceRule(re.compile(r"(?<=[.!?。])\s+|\n+"))
# The same where what stands between semicolons is a statement too.
STATEMENT = SentenceRule(re.compile(r"(?<=[.!?;])\s+"))

_CUT_AT = re.compile(r"[;,:]?\s+\S*$")


def sentences(text: str, rule: SentenceRule) -> list[str]:
    """
    Return the sentences of one paragraph, none if it is empty.

    >>> sentences("Keep UTC, e.g. for Saltmarsh. (Clocks differ.) So be it", LINE)
    ['Keep UTC, e.g. for Saltmarsh.', '(Clocks differ.)', 'So be it']
    >>> sentences("It works, e.g. here. Done in main.py.", PROSE)
    ['It works, e.g. here.', 'Done in main.py.']
    """
    parts: list[str] = []
    start = 0
    for end in rule.end.finditer(text):
        before = text[start : end.start()]
        if rule.goes_on and rule.goes_on.search(before):
            continue
        whole = text[start : end.end()].strip()
        parts.append(whole if rule.keeps_closing else before.strip() or whole)
        start = end.end()
    return [part for part in [*parts, text[start:].strip()] if part]


def first_sentences(line: str, *, count: int, chars: int) -> str:
    """
    Return the first sentences of `line`: at most `count`, and as many as stay within `chars` characters.

    A first sentence longer than that is cut between words and ends in an ellipsis.

    >>> first_sentences("Keep UTC. Stations differ. So do clocks.", count=2, chars=80)
    'Keep UTC. Stations differ.'
    >>> first_sentences("Stations report in local time until the firmware of 2025", count=1, chars=30)
    'Stations report in local time…'
    """
    kept = ""
    for sentence in sentences(line, LINE)[:count]:
        if len(joined := f"{kept} {sentence}".lstrip()) > chars:
            break
        kept = joined
    return closed(kept or _CUT_AT.sub("", line[:chars]).rstrip(" ;,:") + "…")


def shortened(text: str, limit: int) -> str:
    """
    Return `text` cut at a word to at most `limit` characters.

    >>> shortened("one two three", 9)
    'one two…'
    """
    if len(text) <= limit:
        return text
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def excerpt(text: str, limit: int = 110) -> str:
    """
    Return `text` on one line, cut at a word to at most `limit` characters.

    >>> excerpt("one\\n  two three", 9)
    'one two…'
    """
    return shortened(" ".join(text.split()), limit)
