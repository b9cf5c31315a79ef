"""The words of two texts, and the share of them that both have."""

import re
from collections.abc import Set as AbstractSet

_WORD = re.compile(r"\w+")


def words_in(text: str) -> list[str]:
    """Return the words of `text`, in lower case, in their order."""
    return _WORD.findall(text.casefold())


def share_of_all(words: AbstractSet[str], others: AbstractSet[str]) -> float:
    """
    Return the share that two texts have in common of all words in either, 0 to 1 (Jaccard).

    >>> share_of_all({"keep", "raw", "payloads"}, {"keep", "the", "raw", "payloads"})
    0.75
    """
    common = len(words & others)
    return common / (len(words) + len(others) - common) if common else 0.0


def share_of_fewer(words: AbstractSet[str], others: AbstractSet[str]) -> float:
    """
    Return the share of the shorter text's words that the other has, 0 to 1; 0 without words.

    >>> share_of_fewer({"keep", "raw", "payloads"}, {"keep", "the", "raw", "payloads"})
    1.0
    """
    return len(words & others) / min(len(words), len(others)) if words and others else 0.0


def nested(words: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Return whether one of the sets holds the other."""
    return words <= others or others <= words
