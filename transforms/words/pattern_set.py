"""Patterns looked for together in one pass: RE2 finds which of them occur, with the results of `re`."""

import re
from collections.abc import Sequence
from functools import lru_cache

import re2

# What both engines read alike: to RE2 a letter beyond ASCII is part of no word, a vertical tab no space.
_READ_OTHERWISE = re.compile(r"[^\t\n\r -~‘’“”–—…→←•×✓✔✅❌]")
_TEXTS_REMEMBERED = 4096
# A set that runs out of memory finds nothing; all word lists of three languages pass with 4 MB.
_MEMORY = 64 << 20


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def reads_alike(text: str) -> bool:
    """Return whether RE2 and `re` find the same in a text; `$` is another place before a last line break."""
    return not text.endswith("\n") and _READ_OTHERWISE.search(text) is None


class PatternSet:
    """Several patterns without regard to case: which of them occur in a text."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        """Take compiled patterns, all of them IGNORECASE and no other flag."""
        self._patterns = tuple(patterns)
        self._set = re2.Set.SearchSet(_options())
        self._of_set: list[int] = []
        self._others: list[int] = []
        for at, pattern in enumerate(self._patterns):
            (self._of_set if self._is_added(pattern) else self._others).append(at)
        self._set.Compile()

    def _is_added(self, pattern: re.Pattern[str]) -> bool:
        try:
            self._set.Add(pattern.pattern)
        except re2.error:  # looks around, which RE2 does not
            return False
        return True

    def places_in(self, text: str) -> list[int]:
        """Return the places of the patterns that occur in a text, ascending."""
        if not reads_alike(text):
            return [at for at, pattern in enumerate(self._patterns) if pattern.search(text)]
        places = [self._of_set[at] for at in self._set.Match(text) or ()] if self._of_set else []
        return sorted([*places, *(at for at in self._others if self._patterns[at].search(text))])


class Gate:
    """Says without delay that a pattern occurs nowhere in a text; if it may, `re` has the last word."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        """Take a compiled pattern, IGNORECASE and no other flag."""
        try:
            self._fast = re2.compile(pattern.pattern, _options())
        except re2.error:
            self._fast = None

    def is_shut(self, text: str) -> bool:
        """Return whether the pattern cannot occur."""
        return self._fast is not None and reads_alike(text) and self._fast.search(text) is None


def _options() -> re2.Options:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _MEMORY
    return options
