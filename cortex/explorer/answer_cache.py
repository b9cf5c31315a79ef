"""KeptAnswers that take long, kept for as long as everything they follow from is as it was."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

Kept = TypeVar("Kept")

# A person looks at a few projects at a time; an answer holds some hundred rows.
ANSWERS_KEPT = 20


@dataclass
class KeptAnswers:
    """The last answers by question, each with the state of the store that it holds for."""

    _kept: dict[Hashable, tuple[object, object]] = field(default_factory=dict)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def get(self, question: Hashable, state: object, find: Callable[[], Kept]) -> Kept:
        """Return what `find` answered in this state; the answer of a former state is dropped."""
        with self._changing:
            known = self._kept.pop(question, None)
            if known is not None and known[0] == state:
                self._kept[question] = known  # the last one asked for is the last to go
                return known[1]  # type: ignore[return-value]
        answer = find()
        with self._changing:
            self._kept[question] = (state, answer)
            while len(self._kept) > ANSWERS_KEPT:
                del self._kept[next(iter(self._kept))]
        return answer

    def clear(self) -> None:
        """Drop all answers."""
        with self._changing:
            self._kept.clear()
