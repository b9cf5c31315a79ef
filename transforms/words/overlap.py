"""The words of two texts, and the share of them that both have."""

from collections.abc import Set as AbstractSet

from cortex.hooks.evidence.text import share_of_all, share_of_fewer, words_in

__all__ = ["nested", "share_of_all", "share_of_fewer", "words_in"]


def nested(words: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Return whether one of the sets holds the other."""
    return words <= others or others <= words
