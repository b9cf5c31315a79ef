"""How the lists of a search become one: fused scores, neighbours that lend score, duplicates folded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH
from cortex.transforms.search.index_text import setting
from cortex.transforms.words.overlap import share_of_all, words_in
from cortex.transforms.words.subjects import Subject, is_same_subject, subject_in

Scores = NDArray[np.float64]
Line = tuple[str, int]
# Names and telling words that two memories of one subject share at least: fewer are chance.
_SUBJECT_WORDS = 3


def fuse(lexical: Scores, similarity: Scores, policy: Policy) -> Scores:
    """
    Return one score per candidate, higher is better, from BM25 scores and cosine similarities.

    `lexical` is NaN where a row was not among the best by words and `similarity` where it has no vector.
    Both are standardised over the candidates (mean 0, deviation 1) and added with the weights of
    ranking.csv; reciprocal ranks are added with `rrf_weight`. A row missing from the words' list counts
    as a score of 0 there, which BM25 gives to rows without any of the words; a row without a vector counts as
    average, so that rows not embedded yet are neither hidden nor favoured.
    """
    by_words = standardised(np.nan_to_num(lexical, nan=0.0))
    by_meaning = standardised(similarity)
    fused = setting(policy, "lexical_weight") * by_words + setting(policy, "vector_weight") * by_meaning
    rrf_weight = setting(policy, "rrf_weight")
    if rrf_weight:
        k = setting(policy, "rrf_k")
        by_rank = reciprocal_ranks(lexical, k) + reciprocal_ranks(similarity, k)
        # Standardised too: the order is the same, and the neighbours' share stays in proportion.
        fused = fused + rrf_weight * standardised(by_rank)
    return fused


def standardised(values: Scores) -> Scores:
    """Return `values` with mean 0 and deviation 1; a missing value (NaN) and equal values become 0."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values))
    deviation = float(values[known].std())
    if deviation < 1e-9:
        return np.zeros(len(values))
    return np.where(known, (values - float(values[known].mean())) / deviation, 0.0)


def reciprocal_ranks(values: Scores, k: float) -> Scores:
    """Return 1 / (k + rank), the highest value at rank 1, equal values sharing the better rank; 0 for NaN."""
    known = ~np.isnan(values)
    ordered = np.sort(-values[known])
    ranks = np.searchsorted(ordered, -values, side="left") + 1
    return np.where(known, 1.0 / (k + ranks), 0.0)


def comparable(bm25: Scores, rows_in_table: int) -> Scores:
    """
    Return BM25 scores divided by the most that one rare word can weigh in a table of that many rows.

    Each table weighs words by its own counts, so that a hit in a table of 20 memories scores far lower than
    the same hit among 2,000 passages. Over ten projects at once the division raises recall@10 from .74 to
    .82, which is what one common table reaches.
    """
    return bm25 / math.log(1 + max(rows_in_table, 1))


@dataclass(frozen=True)
class Places:
    """Where each candidate stands: number of its transcript (-1: no passage), seq, line, and who spoke."""

    file: NDArray[np.int64]
    seq: NDArray[np.int64]
    line: NDArray[np.int64]
    is_person: NDArray[np.bool_]


def lend(scores: Scores, places: Places, policy: Policy) -> Scores:
    """
    Return `scores` with a share of the passages before and after added to each passage.

    A turn of a conversation is often an answer whose question stands in the turn before it. A passage gets
    `neighbour_share` of each neighbour that scores above average, if a person spoke one of the two and
    at most `neighbour_lines` lie between: what the assistant says between two tool calls is no dialogue,
    and lending there cost 5 points of recall@5 in working sessions.
    """
    order = np.lexsort((places.seq, places.file))
    file, is_person = places.file[order], places.is_person[order]
    follows = (file[:-1] >= 0) & (file[1:] == file[:-1]) & (np.diff(places.seq[order]) == 1)
    near = np.diff(places.line[order]) <= setting(policy, "neighbour_lines")
    talking = follows & near & (is_person[1:] | is_person[:-1])
    given = setting(policy, "neighbour_share") * np.maximum(scores[order], 0.0)
    lent = np.zeros(len(scores))
    lent[1:] += np.where(talking, given[:-1], 0.0)
    lent[:-1] += np.where(talking, given[1:], 0.0)
    result = scores.copy()
    result[order] += lent
    return result


def lend_to_sources(
    fused: Scores, lent: Scores, rests_on: Sequence[tuple[bool, frozenset[Line]]], policy: Policy
) -> Scores:
    """
    Return `lent` with a share of a memory's score in `fused` added to the passages it rests on.

    Takes of each row whether it is a memory, and its lines. What somebody made a memory of says more to a
    question than what stands beside it; `source_share` of the best memory of the line is given, if above
    average.
    """
    best: dict[Line, float] = {}
    for score, (is_memory, lines) in zip(fused.tolist(), rests_on, strict=True):
        if is_memory and score > 0:
            best.update({line: max(score, best.get(line, 0.0)) for line in lines})
    share = setting(policy, "source_share")
    given = [
        0.0 if is_memory else share * max((best.get(line, 0.0) for line in lines), default=0.0)
        for is_memory, lines in rests_on
    ]
    result: Scores = lent + np.array(given)
    return result


class Validity(IntEnum):
    """How far a statement holds: its session went past it, it was only put forward, stated, decided."""

    OVERTAKEN = 0
    PROPOSED = 1
    STATED = 2
    DECIDED = 3


@dataclass(frozen=True)
class SearchHit:
    """
    What folding needs to know of a row: its position, its kind, its text, the lines it rests on.

    `score` is what it is ranked by; `is_record` says that it is the record of a session, on many subjects,
    `is_asking` that it is a turn that asks (of the assistant: that it ends with a question), `is_persons`
    that a person said it.
    """

    row: int
    is_memory: bool
    text: str
    lines: frozenset[Line]
    score: float = 0.0
    updated_at: datetime = EPOCH
    validity: Validity = Validity.STATED
    is_record: bool = False
    is_asking: bool = False
    is_persons: bool = False


@dataclass(frozen=True)
class SearchGroup:
    """
    Rows that make one result: the first of `rows` speaks for those that say the same.

    `nearby` are others of that stretch of a session, or of that subject, best first; `earlier` those of them
    whose place the first row took: memories of its subject that are older, or only put forward.
    """

    rows: tuple[int, ...]
    nearby: tuple[int, ...] = ()
    earlier: frozenset[int] = frozenset()

    @property
    def all(self) -> tuple[int, ...]:
        """Return all its rows."""
        return (*self.rows, *self.nearby)


def folded(
    candidates: Sequence[SearchHit], policy: Policy, limit: int, *, by_stretch: bool = False
) -> list[SearchGroup]:
    """
    Return at most `limit` groups of rows, each to be shown as one result.

    Takes candidates best first. Passages of one line, a memory and the passages it rests on, and texts that
    share `duplicate_overlap` of their words become one group at the place of its best row. A memory speaks
    for its group, because it stands by itself. Two memories are folded only if their texts agree: one line
    can hold two facts.

    With `by_stretch`, up to `stretch_rows` further rows stand nearby: those within `stretch_lines` of the
    lines of the group's best row that score `stretch_score` of it, and memories of its subject. Of memories
    of one subject the newest speaks, and a decision before what was only put forward; before a turn in which
    the assistant asks, the best one of its stretch that was said after it.
    """
    numbers = _Numbers.of(policy)
    groups: list[_Group] = []
    for candidate in candidates:
        words = frozenset(words_in(candidate.text))
        home = next((group for group in groups if group.takes(candidate, words)), None)
        if home is not None:
            home.add(candidate, words)
            continue
        beside = (group for group in groups if by_stretch and group.has_beside(candidate))
        if (group := next(beside, None)) is not None:
            group.nearby.append(candidate)
        elif len(groups) < limit:
            groups.append(_Group(candidate, words, numbers))
    ordered = _in_force_first(groups, policy) if by_stretch else groups
    return [group.settled() for group in ordered]


@dataclass(frozen=True)
class _Numbers:
    """The numbers that folding goes by, and the words that name no subject."""

    overlap: float
    lines: float
    rows: int
    score: float
    subject_share: float
    stop_words: frozenset[str]

    @classmethod
    def of(cls, policy: Policy) -> "_Numbers":
        return cls(
            setting(policy, "duplicate_overlap"),
            setting(policy, "stretch_lines"),
            int(setting(policy, "stretch_rows")),
            setting(policy, "stretch_score"),
            setting(policy, "subject_share"),
            frozenset(map(str, policy.tables["query_words"]["word"].to_pylist())),
        )


class _Group:
    def __init__(self, best: SearchHit, words: frozenset[str], numbers: _Numbers) -> None:
        self._best, self._numbers = best, numbers
        self._rows = [best]
        self._lines = set(best.lines)
        self._words = [words]
        self.nearby: list[SearchHit] = []

    @property
    def _has_memory(self) -> bool:
        return self._rows[0].is_memory

    def takes(self, candidate: SearchHit, words: frozenset[str]) -> bool:
        """Return whether a row says what the group says."""
        if any(share_of_all(words, own) >= self._numbers.overlap for own in self._words):
            return True
        return not (self._has_memory and candidate.is_memory) and not self._lines.isdisjoint(candidate.lines)

    def add(self, candidate: SearchHit, words: frozenset[str]) -> None:
        """Take in a row that says the same."""
        if candidate.is_memory and not self._has_memory:
            self._rows.insert(0, candidate)
        else:
            self._rows.append(candidate)
        self._lines |= candidate.lines
        self._words.append(words)

    def has_beside(self, candidate: SearchHit) -> bool:
        """Return whether a row belongs below the group's own, and there is room for it."""
        if self.is_of_subject(self._rows[0], candidate) and _precedence(candidate) > _precedence(
            self._rows[0]
        ):
            return True  # it will lead, so there is room for it
        if len(self.nearby) >= self._numbers.rows:
            return False
        is_good = candidate.score >= self._numbers.score * self._best.score
        return (is_good and self._is_near(candidate)) or self.is_of_subject(self._rows[0], candidate)

    def _is_near(self, candidate: SearchHit) -> bool:
        return any(
            file == own_file and abs(line - own_line) <= self._numbers.lines
            for file, line in candidate.lines
            for own_file, own_line in self._best.lines
        )

    def is_of_subject(self, head: SearchHit, candidate: SearchHit) -> bool:
        """Return whether two memories are of one subject."""
        if not (head.is_memory and candidate.is_memory) or head.is_record or candidate.is_record:
            return False
        own, other = (_subject_of(each.text, self._numbers.stop_words) for each in (head, candidate))
        return is_same_subject(own, other, share=self._numbers.subject_share, least_words=_SUBJECT_WORDS)

    @property
    def score(self) -> float:
        """Return the score of its best row."""
        return self._best.score

    @property
    def lead(self) -> SearchHit:
        """Return the row that speaks for the group: of the memories of its subject the one that holds now."""
        newest = max((self._rows[0], *self._same), key=_precedence)
        return newest if _precedence(newest) > _precedence(self._rows[0]) else self._rows[0]

    @property
    def _same(self) -> list[SearchHit]:
        return [each for each in self.nearby if self.is_of_subject(self._rows[0], each)]

    @property
    def _after_the_question(self) -> SearchHit | None:
        """Return the best row below a question of the assistant that was said after it, and asks nothing."""
        if not self._rows[0].is_asking or self._rows[0].is_persons:
            return None
        return next((each for each in self.nearby if not each.is_asking and self._follows(each)), None)

    def _follows(self, candidate: SearchHit) -> bool:
        return any(
            file == own_file and line > own_line
            for file, line in candidate.lines
            for own_file, own_line in self._rows[0].lines
        )

    def settled(self) -> SearchGroup:
        """Return the group with the memory that holds now in the first place."""
        head, lead = self._rows[0], self.lead
        earlier = frozenset(each.row for each in (head, *self._same) if _precedence(each) < _precedence(lead))
        if lead is head:
            lead = self._after_the_question or head
        if lead is head:
            return SearchGroup(_rows(self._rows), _rows(self.nearby), earlier)
        below = [each for each in self.nearby if each is not lead]
        return SearchGroup((lead.row,), _rows([*self._rows, *below]), earlier)


def _precedence(hit: SearchHit) -> tuple[Validity, datetime]:
    """Return what a memory holds by: its validity, and of equal ones the newer the more."""
    return hit.validity, hit.updated_at


def _in_force_first(groups: list[_Group], policy: Policy) -> list[_Group]:
    """
    Return groups in their order, but what no longer holds below the next group that took its place.

    Of a statement that its session went past that is one of the same session that stands later, holds, and
    scores `outcome_score` of it; of a proposal a decision on its subject.
    """
    share = setting(policy, "outcome_score")
    ordered = list(groups)
    for group in groups:
        if group.lead.validity >= Validity.STATED:
            continue
        at = ordered.index(group)
        later = (place for place in range(at + 1, len(ordered)) if _took_place(ordered[place], group, share))
        if (place := next(later, None)) is not None:
            ordered.insert(place, ordered.pop(at))
    return ordered


def _took_place(group: _Group, before: _Group, share: float) -> bool:
    new, old = group.lead, before.lead
    if old.validity is Validity.PROPOSED:
        return new.validity is Validity.DECIDED and group.is_of_subject(old, new)
    holds = new.is_memory and new.validity >= Validity.STATED and group.score >= share * before.score
    return holds and any(
        file == own_file and line > own_line for file, line in new.lines for own_file, own_line in old.lines
    )


@lru_cache(maxsize=2_000)
def _subject_of(text: str, stop_words: frozenset[str]) -> Subject:
    return subject_in(text, stop_words)


def _rows(hits: Sequence[SearchHit]) -> tuple[int, ...]:
    return tuple(hit.row for hit in hits)
