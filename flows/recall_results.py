"""What recall returns: results with their evidence, and what was said near them."""

from dataclasses import dataclass
from datetime import datetime

from cortex.flows.described_code import Code
from cortex.flows.replaced import Replaced


@dataclass(frozen=True)
class Evidence:
    """Where something was said: lines of a transcript, counted from 1, best first."""

    session_id: str
    file: str
    lines: tuple[int, ...]
    said_at: datetime | None


@dataclass(frozen=True)
class Nearby:
    """A memory or a turn of the same stretch of a session as a result, which bears on the question too."""

    id: str
    kind: str
    memory_type: str | None
    text: str
    statement: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class RecallResult:
    """
    One result: a memory, or a turn in the words of the session.

    `score` orders the results of one question and means nothing across questions. `confidence` is 0 to 1,
    None for a turn. `statement` is what of the text bears on the question: a memory's is its text. `passage`
    is the best passage in the session's own words that was folded into a memory, `quote` what of it bears on
    the question, `nearby` what else of that
    stretch of the session bears on the question, best first, `code` what a description of code leads to by
    its `source_of` edge, `replaces` what a person said that a memory took the place of,
    `speaker` is `trust` with a colleague's name.
    """

    id: str
    kind: str
    memory_type: str | None
    text: str
    project_id: str
    score: float
    confidence: float | None
    created_at: datetime | None
    evidence: tuple[Evidence, ...]
    trust: str
    status: str
    passage: str | None
    code: Code | None = None
    replaces: tuple[Replaced, ...] = ()
    statement: str = ""
    quote: str = ""
    nearby: tuple[Nearby, ...] = ()
    speaker: str = ""

    @property
    def all_evidence(self) -> tuple[Evidence, ...]:
        """Return where it was said, and where what is nearby was."""
        return (*self.evidence, *(item for each in self.nearby for item in each.evidence))

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Return the ids of the memories it shows."""
        shown = ((self.kind, self.id), *((each.kind, each.id) for each in self.nearby))
        return tuple(name for kind, name in shown if kind == "memory")

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all texts it shows."""
        passage = (self.passage,) if self.passage else ()
        nearby, replaced = (each.text for each in self.nearby), (old.text for old in self.replaces)
        return (self.text, *passage, *nearby, *replaced)
