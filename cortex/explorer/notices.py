"""What was done last, to be said on the page that follows, and how to take it back."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

# A notice is read on the page that follows a deed; a few more, for the way back.
NOTICES_KEPT = 20


@dataclass(frozen=True)
class UndoForm:
    """A form that takes a deed back: its address, its fields and what stands on its button."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict)
    label: str = "Undo"


@dataclass(frozen=True)
class DeedNotice:
    """What was done; `warning` is what a person should know of it, "" for nothing."""

    text: str
    warning: str = ""
    undo: UndoForm | None = None


class Notices:
    """The last notices, by a name that cannot be guessed; kept in memory only."""

    def __init__(self) -> None:
        self._notices: dict[str, DeedNotice] = {}

    def add(self, notice: DeedNotice) -> str:
        """Keep a notice and return its name."""
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > NOTICES_KEPT:
            del self._notices[next(iter(self._notices))]
        return name

    def get(self, name: str) -> DeedNotice | None:
        """Return the notice of a name, None if there is none any more."""
        return self._notices.get(name)

    def clear(self) -> None:
        """Drop all notices."""
        self._notices.clear()
