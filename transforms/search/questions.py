"""What a question asks for beyond its words: a reason, what was done, what is open (spec 10.2)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cortex.transforms.policy import Policy
from cortex.transforms.search.answers import Asked
from cortex.transforms.search.index_text import query_words
from cortex.transforms.words.overlap import words_in

# The signal of signal_patterns.csv that says why, in each language.
_GIVES_REASON = "gives_reason"
_PARTICLE_CHARS = 4


@dataclass(frozen=True)
class QuestionPatterns:
    """How questions ask for a reason, for what was done, for what is open; and how a sentence says why."""

    reason: re.Pattern[str]
    work: re.Pattern[str]
    open: re.Pattern[str]
    gives_reason: re.Pattern[str]

    @classmethod
    def of(cls, policy: Policy) -> "QuestionPatterns":
        """Return the patterns of question_patterns.csv in all languages; compiled once for each policy."""
        asked = tuple(
            (str(row["asks"]), str(row["pattern"])) for row in policy.rows["question_patterns"].values()
        )
        gives = tuple(
            str(row["pattern"])
            for row in policy.rows["signal_patterns"].values()
            if row["signal"] == _GIVES_REASON
        )
        return _patterns(asked, gives)


@lru_cache(maxsize=8)
def _patterns(asked: tuple[tuple[str, str], ...], gives: tuple[str, ...]) -> QuestionPatterns:
    by_kind = {kind: _any([p for k, p in asked if k == kind]) for kind in ("reason", "work", "open")}
    return QuestionPatterns(gives_reason=_any(gives), **by_kind)


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True)
class RecallQuestion:
    """A question: its words with their weights, and whether it asks for a reason."""

    asked: Asked
    patterns: QuestionPatterns
    asks_why: bool

    @classmethod
    def of(cls, text: str, word_ranks: Mapping[str, int], policy: Policy) -> "RecallQuestion":
        """Return a question as recall looks at it; `word_ranks` as for `Asked.of`."""
        patterns = QuestionPatterns.of(policy)
        asked = Asked.of(query_words(text, policy), word_ranks, policy)
        return cls(asked, patterns, bool(patterns.reason.search(text)))


def asks_for_records(question: str, policy: Policy) -> str:
    """
    Return "work" or "open" where a question asks what was done or what is open and names no subject.

    >>> from cortex.storage.reference import read_policy
    >>> asks_for_records("where did we stop?", read_policy(None))
    'work'
    >>> asks_for_records("where did we stop the pump?", read_policy(None))
    ''
    """
    patterns, text = QuestionPatterns.of(policy), " ".join(question.split())
    small = set(map(str, policy.tables["query_words"]["word"].to_pylist()))
    for kind, pattern in (("open", patterns.open), ("work", patterns.work)):
        rest, matches = pattern.subn(" ", text)
        if matches and all(_is_small(word, small) for word in words_in(rest)):
            return kind
    return ""


def _is_small(word: str, small: set[str]) -> bool:
    # What is left of a question without spaces between its words is a particle or an ending.
    return word in small or (not word.isascii() and len(word) <= _PARTICLE_CHARS)
