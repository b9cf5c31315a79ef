"""Text as it is compared: its words in lower case, one space between, without punctuation around them."""

import re
import unicodedata


def normalised(fact: str) -> str:
    """
    Return the words of a fact, lower case, one space between, without punctuation around them.

    >>> normalised("Use  **pnpm**, not npm!")
    'use pnpm not npm'
    """
    words = re.findall(r"[\w][\w./:#@+-]*", unicodedata.normalize("NFKC", fact).casefold())
    return " ".join(word.rstrip("./:-") for word in words)
