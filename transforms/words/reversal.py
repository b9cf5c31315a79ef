"""What a text leaves behind by its own words: "switch from X to Y" is at odds with "use X" (spec 5, 7)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cortex.transforms.policy import Policy
from cortex.transforms.words.facts import Fact, Vocabulary

# What was left is a noun with a word or two next to it; more is its own sentence.
LEFT_WORDS_MAX = 4
_END = re.compile(
    r"[.;,:()!?]|\s(?:because|since|as|so|and|but|while|which|that|for|in|on|when|where|weil|da)\s", re.I
)
# "remove the key from the payload" leaves the payload; of a name with a dot the dot is a part.
_END_OF_THING = re.compile(
    r"[;,:()!?\n→]|\.(?!\w)|\s(?:[-–—]|because|since|as|so|and|or|but|while|which|that|for|in|on|when|where"
    r"|from|to|of|with|into|by|weil|da|porque|para|parce|pour)\s",
    re.I,
)
# "get rid of that folder" names no folder.
_POINTS = re.compile(r"\s*(?:that|this|these|those|it|them|him|her|all|any|which)\b", re.I)
# "Ten minutes instead of six" leaves a number, which occurs in every other sentence too.
_COUNT = re.compile(
    r"\s*(?:(?:\d[\d.,]*|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|sixty)\s*)+$",
    re.I,
)


@dataclass(frozen=True)
class Reversals:
    """The patterns of the policy, whose first group is what was left."""

    patterns: tuple[re.Pattern[str], ...]

    @staticmethod
    def of(policy: Policy) -> "Reversals":
        """Return the patterns of reversals.csv."""
        rows = policy.tables["reversals"]["pattern"].to_pylist()
        return Reversals(tuple(re.compile(str(row), re.IGNORECASE) for row in rows))

    def left_in(self, text: str, vocabulary: Vocabulary) -> tuple[frozenset[str], ...]:
        """
        Return the stems of each thing that `text` says was left.

        Names that are too long to be a thing, and bare numbers, are passed over.
        """
        left = (vocabulary.fact(span).word_set for span in _spans(self.patterns, text, _END))
        return tuple(dict.fromkeys(words for words in left if 0 < len(words) <= LEFT_WORDS_MAX))

    def things_left_in(
        self, text: str, vocabulary: Vocabulary, *more: re.Pattern[str]
    ) -> Iterator[tuple[Fact, str]]:
        """Yield each thing that `text` says was left, by these patterns or `more`, with its words as said."""
        for span in _spans((*self.patterns, *more), text, _END_OF_THING):
            fact = vocabulary.fact(span)
            if 0 < len(fact.word_set) <= LEFT_WORDS_MAX:
                yield fact, span.strip()


def _spans(patterns: Iterable[re.Pattern[str]], text: str, end: re.Pattern[str]) -> Iterator[str]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            span = end.split(f"{match[match.lastindex or 0]} ", maxsplit=1)[0]
            if not (_POINTS.match(span) or _COUNT.match(span)):
                yield span
