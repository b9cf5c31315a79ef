"""Content-addressed ids: the same input gives the same id on any machine (spec 3.2)."""

from __future__ import annotations

import hashlib

# 128 bits: with a billion rows the chance of one collision is about 1e-21.
ID_HEX_DIGITS = 32


# Characters of an id by which notes and recall name a memory, and by which it is cited.
CITED_ID_CHARS = 8


def content_id(*parts: str) -> str:
    """
    Return the id of a row: sha256 over its identifying parts, first 32 hex digits.

    Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.

    >>> content_id("ab", "c") == content_id("a", "bc")
    False
    >>> len(content_id("prompt"))
    32
    """
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()[:ID_HEX_DIGITS]
