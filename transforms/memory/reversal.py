"""What a decision leaves behind by its own words: "switch from X to Y" is at odds with "use X" (spec 7)."""

import re
from dataclasses import dataclass

from cortex.transforms.policy import Policy
from cortex.transforms.words.facts import Vocabulary

# What was left is a noun with a word or two beside it; more is a sentence of its own.
LEFT_WORDS_MAX = 4
_END = re.compile(
    r"[.;,:()!?]|\s(?:because|since|as|so|and|but|while|which|that|for|in|on|when|where|weil|da)\s", re.I
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
        spans = (
            _END.split(f"{match[1]} ", maxsplit=1)[0] for p in self.patterns for match in p.finditer(text)
        )
        named = (span for span in spans if not (_POINTS.match(span) or _COUNT.match(span)))
        left = (vocabulary.fact(span).word_set for span in named)
        return tuple(dict.fromkeys(words for words in left if 0 < len(words) <= LEFT_WORDS_MAX))
