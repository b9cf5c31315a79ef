"""What a setting is: its kind, default, bounds and unit; its value read from words and from TOML."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cortex.transforms.documents.roles import ROLES, caller_role
from cortex.transforms.errors import UsageError
from cortex.transforms.memory.retention import days_of_type
from cortex.transforms.vocabulary import MEMORY_TYPES

# When a change acts: with the command that makes it, or with the run that next does what it is about.
AT_ONCE, NEXT_RUN, NIGHTLY = "at once", "with the next run", "with the next nightly run"

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


# Forms of a list's texts: what reads one, and raises ValueError, and how a person is told of it.
FORMS: dict[str, tuple[Callable[[str], object], str]] = {
    "type=days": (
        days_of_type,
        f'a list of type=days: ["gotcha=90"]; the types: {", ".join(MEMORY_TYPES)}',
    ),
    "subject=role": (
        caller_role,
        f'a list of SUBJECT=ROLE or SUBJECT=ROLE@FOLDER: ["*=reader"]; the roles: {", ".join(ROLES)}',
    ),
}


@dataclass(frozen=True)
class Key:
    """
    One setting.

    `default` gives its kind: a number within `low` and `high` (a whole one if the default is), yes or no, a
    text, or a list of texts out of `words` (of any texts if `words` is empty). A text with `words` is one of
    them, one with `endings` may also end in one of these, one with `beginnings` is empty or begins with one.
    A list may ask for texts of a `form` (a key of FORMS).
    A setting that is `per_project` may differ by project; one that is `for_hooks` is handed to
    the hooks, which cannot read TOML. `acts` says when a change takes effect.
    """

    name: str
    default: int | float | bool | str | tuple[str, ...]
    unit: str
    meaning: str
    low: int = 0
    high: int | None = None
    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()
    form: str = ""
    per_project: bool = False
    for_hooks: bool = False
    is_secret: bool = False
    acts: str = AT_ONCE

    @property
    def variable(self) -> str:
        """Return the environment variable that has the last word."""
        return "CORTEX_" + self.name.replace(".", "_").upper()

    def checked(self, value: object, where: str) -> object:
        """Return `value` as the setting's kind, lists as tuples. Raises UsageError, naming `where`."""
        if isinstance(self.default, tuple) and isinstance(value, list):
            value = tuple(value)
        if isinstance(self.default, float) and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self._fits(value):
            return value
        shown = "what was given" if self.is_secret else repr(value)
        raise UsageError(f"{where}: {self.name} is {shown}.", f"Give {self.wanted}.")

    def from_words(self, words: Sequence[str], where: str) -> object:
        """Return the value that a person's words mean; a word of a closed list may hold several."""
        if isinstance(self.default, tuple):
            parts = [part.strip() for word in words for part in (word.split(",") if self.words else [word])]
            return self.checked(tuple(part for part in parts if part), where)
        text = " ".join(words).strip()
        if isinstance(self.default, bool):
            word = text.lower()
            return self.checked(word in YES if word in (*YES, *NO) else text, where)
        if isinstance(self.default, int):
            return self.checked(int(text) if text.lstrip("-").isdecimal() else text, where)
        if isinstance(self.default, float):
            return self.checked(_decimal(text), where)
        return self.checked(text, where)

    def from_variable(self, text: str, where: str) -> object:
        """Return the value that an environment variable means: paths stand between `:`, as in PATH."""
        is_paths = isinstance(self.default, tuple) and not self.words
        return self.from_words(text.split(os.pathsep) if is_paths else [text], where)

    @property
    def wanted(self) -> str:
        """Say what the setting takes."""
        if self.form:
            return FORMS[self.form][1]
        if isinstance(self.default, tuple):
            return f"any of {', '.join(self.words)}" if self.words else 'a list of paths: ["/one", "/two"]'
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, int):
            return f"a whole number from {self.low}" + ("" if self.high is None else f" to {self.high}")
        if isinstance(self.default, float):
            return f"a number from {self.low}" + ("" if self.high is None else f" to {self.high}")
        if self.endings:
            return f"{', '.join(self.words)} or a path that ends in {' or '.join(self.endings)}"
        if self.words:
            return f"one of {', '.join(self.words)}"
        return f"a text that begins with {' or '.join(self.beginnings)}" if self.beginnings else "a text"

    def _fits(self, value: object) -> bool:
        if isinstance(self.default, tuple):
            return isinstance(value, tuple) and all(
                isinstance(word, str) and (not self.words or word in self.words) and self._is_item(word)
                for word in value
            )
        if isinstance(self.default, int) and not isinstance(self.default, bool):
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return is_number and self.low <= value and (self.high is None or value <= self.high)  # type: ignore[operator]
        if isinstance(self.default, float):
            is_number = isinstance(value, float) and math.isfinite(value)
            return is_number and self.low <= value and (self.high is None or value <= self.high)  # type: ignore[operator]
        if isinstance(value, str) and (self.endings or self.words):
            return value in self.words or (bool(self.endings) and value.endswith(self.endings))
        if isinstance(value, str) and self.beginnings:
            return not value or value.startswith(self.beginnings)
        return isinstance(value, type(self.default))

    def _is_item(self, word: str) -> bool:
        try:
            return not self.form or bool(FORMS[self.form][0](word))
        except ValueError:
            return False


def _decimal(text: str) -> float | str:
    """Return the number that a text writes, else the text itself."""
    try:
        return float(text)
    except ValueError:
        return text
