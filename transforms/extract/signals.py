"""What a passage shows about itself and its place in the session: the numbers that the score adds up."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.sentences import Passage
from cortex.transforms.extract.thread import Place
from cortex.transforms.words.scripts import latin_length, long_words

IDENTIFIER = re.compile(
    r"`[^`]{2,80}`"
    r"|\b\w+\.(?:py|ts|tsx|js|go|rs|json|ya?ml|toml|md|sh|html|css|rb|sql|java|kt|c|h|cpp)\b"
    r"|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b|\b\w+_\w+\b|--[a-z][\w-]+|\b[A-Z]{2,}_[A-Z_]+\b"
    r"|\bv\d+\.\d+[\d.]*\b"
)
_HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\s?(?:%|ms|s|MB|kB|KB|GB|x|tests?|files?|errors?|lines?)\b")

# "Perfect, all tests pass" before "still broken": the claim fell, what was learned on the way did not.
CLAIMS = frozenset(("praises", "speaks_of_done", "counts_tests", "under_outcome"))
SHORT_CHARS = 60
LONG_CHARS = 180
OFTEN = 4  # a word in four other turns belongs to what the session is about


@dataclass(frozen=True)
class Corpus:
    """Word counts of one session, to tell what the session is about and what was said before."""

    turns_with: Counter[str]
    of_user: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[tuple[str, bool]]) -> "Corpus":
        """Return the counts over (text, whether a person said it), one pair a turn."""
        counts: Counter[str] = Counter()
        by_user: set[str] = set()
        for text, is_user in texts:
            words = long_words(text)
            counts.update(words)
            if is_user:
                by_user |= words
        return cls(counts, frozenset(by_user))

    def topicality(self, words: set[str]) -> float:
        """Return the mean of how often the passage's words recur in other turns, 0 to 1."""
        return (
            sum(min(max(self.turns_with[word] - 1, 0), OFTEN) / OFTEN for word in words) / len(words)
            if words
            else 0.0
        )

    def echo(self, words: set[str]) -> float:
        """Return the share of the passage's words that a person used too, 0 to 1."""
        return sum(word in self.of_user for word in words) / len(words) if words else 0.0


def signals(
    passage: Passage, place: Place, corpus: Corpus, strengths: dict[str, float], lexicon: Lexicon
) -> dict[str, float]:
    """Return the signals of one passage by name, each 0 to 1; absent means 0."""
    words = long_words(passage.text)
    shown = {f"marker_{name.lower()}": strength for name, strength in strengths.items()}
    shown["marker_best"] = max(strengths.values(), default=0.0)
    shown |= _shape(passage)
    shown["topicality"] = corpus.topicality(words)
    shown |= dict.fromkeys(lexicon.shown_by(passage.text, passage.heading, place.speaker), 1.0)
    if place.speaker == "user":
        shown["is_user"] = 1.0
    else:
        shown["echo"] = corpus.echo(words)
        if "refuted" in place.marks and shown.keys() & CLAIMS:
            shown["claims_refuted"] = 1.0
    shown |= {f"at_{name}": 1.0 for name in place.marks}
    return shown


def _shape(passage: Passage) -> dict[str, float]:
    text = passage.text
    length = latin_length(text)
    return {
        "names_code": min(len(set(IDENTIFIER.findall(text))), 4) / 4,
        "has_hash": float(bool(_HASH.search(text))),
        "has_number": float(bool(_NUMBER.search(text))),
        "is_short": float(length < SHORT_CHARS),
        "is_long": float(length > LONG_CHARS),
        "is_item": float(passage.block == "item"),
        "is_table": float(passage.block == "table"),
        "is_first": float(passage.position == 0),
        "is_late": min(passage.position, 12) / 12,
    }
