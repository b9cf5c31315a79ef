"""Where sentences end, and texts cut there: one function, and a rule for each kind of text."""

import re

from cortex.hooks.evidence.text import (
    LINE,
    MEMORY,
    PROSE,
    SentenceRule,
    sentences,
    shortened,
    to_last_word,
)
from cortex.hooks.prose.plain import closed

__all__ = [
    "LINE",
    "MEMORY",
    "PROSE",
    "STATEMENT",
    "excerpt",
    "first_sentences",
    "is_question",
    "sentences",
    "shortened",
]


# A memory's text where what stands between semicolons is a statement too.
STATEMENT = SentenceRule(r"(?<=[.!?;])\s+")

# In Japanese and Chinese a particle asks, with or without the mark.
_QUESTION_END = re.compile(
    r"(?:[?？؟]|(?:です|ます|でしょう|ません)か。?|[吗嗎呢]。?)[\s\"'”’)`*」』）]{0,4}$"
)

_QUESTION_END_CHARS = 24


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
    return closed(kept or to_last_word(line[:chars]).rstrip(" ;,:、，；：") + "…")


def is_question(sentence: str) -> bool:
    """
    Return whether a sentence ends in a question mark of any script, or in the particle that asks.

    >>> is_question("Soll es so sein? "), is_question("これでいいですか。"), is_question("Keep it.")
    (True, True, False)
    """
    return _QUESTION_END.search(sentence[-_QUESTION_END_CHARS:]) is not None


def excerpt(text: str, limit: int = 110) -> str:
    """
    Return `text` on one line, cut at a word to at most `limit` characters.

    >>> excerpt("one\\n  two three", 9)
    'one two…'
    """
    return shortened(" ".join(text.split()), limit)
