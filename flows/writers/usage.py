"""What a provider says that a request has used, believed within bounds."""

from collections.abc import Mapping
from typing import Any

from cortex.transforms.errors import AnswerLost

# The longest context has 1,000,000 tokens, and a client asks again up to three times by itself. More is no
# count of tokens, and would be no number for the ledger either.
MOST_TOKENS = 10_000_000
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def used_tokens(usage: object) -> tuple[int, int]:
    """
    Return the tokens of input, cached ones among them, and of output.

    Raises AnswerLost for what cannot be: the request then counts as what was reserved for it.

    >>> used_tokens({"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 2})
    (12, 2)
    """
    if not isinstance(usage, Mapping):
        raise _impossible()
    return sum(_count(usage, name) for name in _INPUT), _count(usage, "output_tokens")


def _count(usage: Mapping[str, Any], name: str) -> int:
    count = usage.get(name)
    if count is None:
        return 0
    if type(count) is not int or not 0 <= count <= MOST_TOKENS:
        raise _impossible()
    return count


def _impossible() -> AnswerLost:
    return AnswerLost("the service says of an answer that it used what cannot be.", "A later run asks again.")
