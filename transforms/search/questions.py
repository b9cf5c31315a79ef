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
# The phrases of phrases.csv that name a cause, that only put something forward, and that say what comes next.
_NAMES_CAUSE, _SUGGESTS, _ANNOUNCES = "names_cause", "suggests", "announces"
_PARTICLE_CHARS = 4


@dataclass(frozen=True)
class QuestionPatterns:
    """
    How questions ask for a reason, a command, what was done, what is open.

    And how a sentence says why, that it only puts something forward, or what is done next.
    """

    reason: re.Pattern[str]
    means: re.Pattern[str]
    work: re.Pattern[str]
    open: re.Pattern[str]
    gives_reason: re.Pattern[str]
    suggests: re.Pattern[str]
    announces: re.Pattern[str]

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
        causes, suggests, announces = (
            _phrases(policy, name) for name in (_NAMES_CAUSE, _SUGGESTS, _ANNOUNCES)
        )
        return _patterns(asked, gives + causes, suggests, announces)


def _phrases(policy: Policy, name: str) -> tuple[str, ...]:
    return tuple(str(row["pattern"]) for row in policy.rows["phrases"].values() if row["name"] == name)


@lru_cache(maxsize=8)
def _patterns(
    asked: tuple[tuple[str, str], ...],
    gives: tuple[str, ...],
    suggests: tuple[str, ...],
    announces: tuple[str, ...],
) -> QuestionPatterns:
    kinds = ("reason", "means", "work", "open")
    by_kind = {kind: _any([p for k, p in asked if k == kind]) for kind in kinds}
    phrases = {"gives_reason": _any(gives), "suggests": _any(suggests), "announces": _any(announces)}
    return QuestionPatterns(**phrases, **by_kind)


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True)
class RecallQuestion:
    """A question: its words with their weights, and whether it asks for a reason, or how to do something."""

    asked: Asked
    patterns: QuestionPatterns
    asks_why: bool
    asks_how: bool

    @classmethod
    def of(cls, text: str, word_ranks: Mapping[str, int], policy: Policy) -> "RecallQuestion":
        """Return a question as recall looks at it; `word_ranks` as for `Asked.of`."""
        patterns = QuestionPatterns.of(policy)
        asked = Asked.of(query_words(text, policy), word_ranks, policy)
        asks_why, asks_how = (bool(kind.search(text)) for kind in (patterns.reason, patterns.means))
        return cls(asked, patterns, asks_why, asks_how)


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
