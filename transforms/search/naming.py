"""Which memory a person's words name: all of them stand in it, and in no other nearly as many."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cortex.hooks.evidence.text import search_text
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row

# A single word may be in a memory by chance.
_FEWEST_WORDS = 2
# Another memory that holds more than this share of the words could be meant as well.
NEAR_SHARE = 0.5
NEAREST_LISTED = 5


@dataclass(frozen=True)
class Naming:
    """
    What words name among memories: `exact` hold all of them, `nearest` (best first) at least one.

    `is_clear` says that the words cannot be mistaken: two or more of them, all in one memory, and at most
    half of them in any other.
    """

    exact: tuple[Row, ...]
    nearest: tuple[Row, ...]
    is_clear: bool


def named_by(question: str, memories: Sequence[Row], policy: Policy) -> Naming:
    """Return which of MEMORIES rows the words of `question` name."""
    words = naming_words(question, policy)
    shares = [(_share(words, row["text"]), row["memory_id"], row) for row in memories]
    ordered = sorted(shares, key=lambda item: (-item[0], item[1]))
    exact = tuple(row for share, _, row in ordered if words and share == 1.0)
    rivals = [share for share, _, _ in ordered[1:2]]
    is_clear = len(exact) == 1 and len(words) >= _FEWEST_WORDS and all(s <= NEAR_SHARE for s in rivals)
    nearest = tuple(row for share, _, row in ordered if share > 0)[:NEAREST_LISTED]
    return Naming(exact, nearest, is_clear)


def naming_words(question: str, policy: Policy) -> set[str]:
    """Return the words of a question that carry its topic, in the singular; none if all are small words."""
    dropped = set(policy.tables["query_words"]["word"].to_pylist())
    return {_singular(word) for word in _words(question) if word not in dropped}


def _share(words: Collection[str], text: str) -> float:
    held = {_singular(word) for word in _words(text)}
    return sum(word in held for word in words) / max(1, len(words))


def _words(text: str) -> list[str]:
    return [
        word for word in re.findall(r"\w+", search_text(text).lower()) if len(word) > 1 or not word.isascii()
    ]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
