"""What recall returns: results with their evidence, and what was said near them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cortex.flows.described_code import Code
from cortex.flows.replaced import Replaced
from cortex.transforms.search.statements import is_known, news_in
from cortex.transforms.words.overlap import words_in


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
    the question; `why` and `rejected` are the reason and what was turned down where the statement does not
    say them, "" where they are not known. `nearby` is what else of that stretch of the session bears on the
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


def shown_once(results: Sequence[RecallResult]) -> list[RecallResult]:
    """
    Return results below whose statements stands only what was not shown above: a turn is shown once.

    Left out are sentences of a passage, of a reason and of what is nearby that were shown. Where something
    nearby says the same as its result, the result rests on its lines.
    """
    above: list[str] = []
    kept: list[RecallResult] = []
    for result in results:
        own = [result.statement]
        why = news_in(result.why, [*own, *above])
        quote = news_in(result.quote, [*own, why, *above])
        own += [why, quote]
        nearby: list[Nearby] = []
        evidence = list(result.evidence)
        for each in result.nearby:
            if news := _news_of(each, [*own, *above]):
                nearby.append(replace(each, statement=news))
                own.append(news)
            elif any(is_known(each.statement, text) for text in own):
                evidence += each.evidence
        above += own
        kept.append(replace(result, why=why, quote=quote, nearby=tuple(nearby), evidence=merged(evidence)))
    return kept


def _news_of(nearby: Nearby, shown: Sequence[str]) -> str:
    # Two facts may differ in a word: a memory goes only where its very words were shown.
    if nearby.kind == "memory":
        words = " ".join(words_in(nearby.statement))
        is_shown = any(f" {words} " in f" {' '.join(words_in(text))} " for text in shown)
        return "" if is_shown else nearby.statement
    return news_in(nearby.statement, shown)


def merged(items: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence of a group in its order, one entry per transcript, each line once."""
    by_file: dict[str, Evidence] = {}
    for item in items:
        before = by_file.get(item.file)
        if before is None:
            by_file[item.file] = item
            continue
        new = tuple(line for line in item.lines if line not in before.lines)
        by_file[item.file] = Evidence(before.session_id, item.file, before.lines + new, before.said_at)
    return tuple(by_file.values())
