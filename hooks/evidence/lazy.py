"""Regular expressions compiled at their first use: those of the hooks take 20 ms, and few serve one call."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there yet: from then on the compiled pattern's own method is.
        value = getattr(re.compile(*self._source), name)
        setattr(self, name, value)
        return value


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """
    Return what does all that a compiled pattern does.

    >>> lazy("t(i)de", re.IGNORECASE).sub(r"\\1", "Tide")
    'i'
    """
    return _LazyPattern(pattern, flags)  # type: ignore[return-value]
