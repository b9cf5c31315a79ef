"""What recall returns: results with their evidence, and what was said near them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cortex.flows.recalling.described_code import Code
from cortex.flows.recalling.replaced import Replaced
from cortex.hooks.evidence.search import Beside, Place, SearchResult
from cortex.transforms.memory.authors import speaker_of
from cortex.transforms.schemas import EPOCH


@dataclass(frozen=True)
class Evidence:
    """Where something was said: lines of a transcript, counted from 1, best first."""

    session_id: str
    file: str
    lines: tuple[int, ...]
    said_at: datetime | None


@dataclass(frozen=True)
class Nearby:
    """
    A memory or a turn of the same stretch of a session as a result, which bears on the question too.

    `is_earlier` says that it is a memory of the result's subject that was said before it.
    """

    id: str
    kind: str
    memory_type: str | None
    text: str
    statement: str
    evidence: tuple[Evidence, ...]
    is_earlier: bool = False


@dataclass(frozen=True)
class RecallResult:
    """
    One result: a memory, or a turn in the words of the session.

    `score` orders the results of one question and means nothing across questions. `confidence` is 0 to 1,
    None for a turn. `statement` is what of the text bears on the question: a memory's is its text. `passage`
    is the best passage in the session's own words that was folded into a memory, `quote` what of it bears on
    the question; `why` and `rejected` are the reason and what was turned down if the statement does not
    say them, "" if they are not known. `nearby` is what else of that stretch of the session bears on the
    question, best first, `code` what a description of code leads to by its `source_of` edge, `replaces` what
    a person said that a memory took the place of; `speaker` is `trust` with a colleague's name.
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
    why: str = ""
    rejected: str = ""
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


def recall_result_of(match: SearchResult) -> RecallResult:
    """Return what a search found, as everything else sees it."""
    row, is_memory = match.row, match.is_memory
    return RecallResult(
        id=match.id,
        kind=_kind(is_memory),
        memory_type=row["memory_type"] if is_memory else None,
        text=row["text"],
        project_id=row["project_id"],
        score=match.score,
        confidence=row["confidence"] if is_memory else None,
        created_at=instant_of(row["created_at"] if is_memory else row["said_at"]),
        evidence=_evidence(match.evidence),
        trust=row["trust"],
        speaker=speaker_of(row) if is_memory else row["trust"],
        status=row["status"] if is_memory else "active",
        passage=match.passage,
        statement=match.statement,
        quote=match.quote,
        why=match.why,
        rejected=match.rejected,
        nearby=tuple(_nearby(each) for each in match.nearby),
    )


def instant_of(microseconds: int | None) -> datetime | None:
    """Return an instant (UTC) as the search index holds it."""
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def _nearby(each: Beside) -> Nearby:
    return Nearby(
        id=each.id,
        kind=_kind(each.is_memory),
        memory_type=each.row["memory_type"] if each.is_memory else None,
        text=each.row["text"],
        statement=each.statement,
        evidence=_evidence(each.evidence),
        is_earlier=each.is_earlier,
    )


def _kind(is_memory: bool) -> str:
    return "memory" if is_memory else "turn"


def _evidence(places: Iterable[Place]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(each.session_id, each.file, each.lines, instant_of(each.said_at)) for each in places
    )
