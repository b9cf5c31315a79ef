"""How the lists of a search become one: fused scores, neighbours that lend score, duplicates folded."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from heapq import nlargest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .question import Numbers, SearchSettings

    Line = tuple[str, int]

from .text import Subject, is_same_subject, share_of_all, subject_in, word_set

# Names and telling words that two memories of one subject share at least: fewer are chance.
_SUBJECT_WORDS = 3

# How far a statement holds: its session went past it, it was only put forward, stated, decided.
OVERTAKEN, PROPOSED, STATED, DECIDED = range(4)


class SearchCandidate:
    """
    A row of a search's lists, and what ranks and folds it.

    `lexical` is its BM25 score, None if it is not among the best by words; `similarity` its cosine with
    the question, None if it has no vector. `lines` are those that it rests on; `place` is (file, seq,
    line) of a passage. `is_record` says that it is the record of a session, on many subjects, `is_asking`
    that it is a turn that asks (of the assistant: that it ends with a question), `is_persons` that a person
    said it, `is_lead_in` that the assistant only says what it does next, `sums_up` that it is a memory that
    says less than the turns it rests on: a record or a plan, `is_remembered` that somebody had it remembered.
    """

    __slots__ = (
        *("id", "is_asking", "is_lead_in", "is_memory", "is_persons", "is_record", "is_remembered"),
        *("lexical", "lines", "place", "row", "score", "similarity", "sums_up", "text", "updated_at"),
        "validity",
    )

    def __init__(
        self,
        id: str,
        text: str,
        lines: frozenset[Line] = frozenset(),
        *,
        is_memory: bool = False,
        place: tuple[str, int, int] | None = None,
        lexical: float | None = None,
        similarity: float | None = None,
        score: float = 0.0,
        updated_at: int = 0,
        validity: int = STATED,
        is_record: bool = False,
        is_asking: bool = False,
        is_persons: bool = False,
        is_lead_in: bool = False,
        sums_up: bool = False,
        is_remembered: bool = False,
        row: dict[str, Any] | None = None,
    ) -> None:
        self.id, self.text, self.lines, self.is_memory, self.place = id, text, lines, is_memory, place
        self.lexical, self.similarity, self.score = lexical, similarity, score
        self.updated_at, self.validity, self.is_record = updated_at, validity, is_record
        self.is_asking, self.is_persons, self.is_lead_in = is_asking, is_persons, is_lead_in
        self.sums_up, self.is_remembered = sums_up, is_remembered
        self.row = row or {}


def ranked(candidates: Sequence[SearchCandidate], numbers: Numbers) -> list[SearchCandidate]:
    """Return candidates with their scores, best first; ties go by id, so that their order changes nothing."""
    if not candidates:
        return []
    fused = fuse([each.lexical for each in candidates], [each.similarity for each in candidates], numbers)
    lent = lend(fused, candidates, numbers)
    given = boost_sources(fused, candidates, numbers)
    gained = position_boost(candidates, numbers)
    for each, *parts in zip(candidates, lent, given, gained):
        each.score = sum(parts)
    for each, score in zip(candidates, session_boost(candidates, numbers)):
        each.score += score
    return sorted(candidates, key=lambda each: (-each.score, each.id))


def fuse(
    lexical: Sequence[float | None], similarity: Sequence[float | None], numbers: Numbers
) -> list[float]:
    """
    Return one score per candidate, higher is better, from BM25 scores and cosine similarities.

    Both are standardised over the candidates (mean 0, deviation 1) and added with the weights of
    ranking.csv; reciprocal ranks are added with `rrf_weight`. A row missing from the words' list counts
    as a score of 0 there, which BM25 gives to rows without any of the words; a row without a vector counts as
    average, so that rows not embedded yet are neither hidden nor favoured.
    """
    by_words = standardised([value or 0.0 for value in lexical])
    by_meaning = standardised(similarity)
    words, meaning = numbers["lexical_weight"], numbers["vector_weight"]
    fused = [words * a + meaning * b for a, b in zip(by_words, by_meaning)]
    rrf_weight = numbers["rrf_weight"]
    if rrf_weight:
        k = numbers["rrf_k"]
        ranks = [a + b for a, b in zip(reciprocal_ranks(lexical, k), reciprocal_ranks(similarity, k))]
        # Standardised too: the order is the same, and the neighbours' share stays in proportion.
        fused = [a + rrf_weight * b for a, b in zip(fused, standardised(ranks))]
    return fused


def standardised(values: Sequence[float | None]) -> list[float]:
    """Return `values` with mean 0 and deviation 1; a missing value and equal values become 0."""
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    if deviation < 1e-9:
        return [0.0] * len(values)
    return [0.0 if value is None else (value - mean) / deviation for value in values]


def reciprocal_ranks(values: Sequence[float | None], k: float) -> list[float]:
    """Return 1 / (k + rank), the highest value at rank 1, equal ones sharing the better rank; 0 for None."""
    ordered = sorted(-value for value in values if value is not None)
    return [0.0 if value is None else 1.0 / (k + bisect_left(ordered, -value) + 1) for value in values]


def comparable(bm25: float, rows_in_table: int) -> float:
    """
    Return a BM25 score divided by the most that one rare word can weigh in a table of that many rows.

    Each table weighs words by its own counts, so that a hit in a table of 20 memories scores far lower than
    the same hit among 2,000 passages. Over ten projects at once the division raises recall@10 from .74 to
    .82, which is what one common table reaches.
    """
    return bm25 / math.log(1 + max(rows_in_table, 1))


def lend(scores: Sequence[float], candidates: Sequence[SearchCandidate], numbers: Numbers) -> list[float]:
    """
    Return `scores` with a share of the passages before and after added to each passage.

    A turn of a conversation is often an answer whose question stands in the turn before it. A passage gets
    `neighbour_share` of each neighbour that scores above average, if a person spoke one of the two and
    at most `neighbour_lines` lie between: what the assistant says between two tool calls is no dialogue,
    and lending there cost 5 points of recall@5 in working sessions.
    """
    share, most_lines = numbers["neighbour_share"], numbers["neighbour_lines"]
    placed = [(each.place, at) for at, each in enumerate(candidates) if each.place is not None]
    order = [at for _, at in sorted(placed)]
    result = list(scores)
    for first, second in zip(order, order[1:]):  # noqa: RUF007 - Python 3.10
        before, after = candidates[first], candidates[second]
        (file, seq, line), (next_file, next_seq, next_line) = before.place, after.place  # type: ignore[misc]
        if file != next_file or next_seq - seq != 1 or next_line - line > most_lines:
            continue
        if before.is_persons or after.is_persons:
            result[second] += share * max(scores[first], 0.0)
            result[first] += share * max(scores[second], 0.0)
    return result


def boost_sources(
    scores: Sequence[float], candidates: Sequence[SearchCandidate], numbers: Numbers
) -> list[float]:
    """
    Return what passages get of the scores of the memories that rest on them.

    What somebody made a memory of says more to a question than what stands beside it; `source_share` of the
    best memory of the line is given, if above average.
    """
    best: dict[Line, float] = {}
    for score, each in zip(scores, candidates):
        if each.is_memory and score > 0:
            best.update({line: max(score, best.get(line, 0.0)) for line in each.lines})
    share = numbers["source_share"]
    return [
        0.0 if each.is_memory else share * max((best.get(line, 0.0) for line in each.lines), default=0.0)
        for each in candidates
    ]


def position_boost(candidates: Sequence[SearchCandidate], numbers: Numbers) -> list[float]:
    """
    Return what a row gains by standing late in its session, less what it loses by saying nothing.

    What somebody had remembered stands at the end of one that it is all of.
    """
    last: dict[str, int] = {}
    for each in candidates:
        for file, line in each.lines:
            last[file] = max(last.get(file, 1), line)
    later, lead_in = numbers["later_weight"], numbers["lead_in_weight"]
    return [
        later * max((line / last[file] for file, line in each.lines), default=float(each.is_remembered))
        - (lead_in if each.is_lead_in else 0.0)
        for each in candidates
    ]


def session_boost(candidates: Sequence[SearchCandidate], numbers: Numbers) -> list[float]:
    """
    Return what a row gains by standing in a session that is about the question.

    A session has the mean score of its `session_rows` best rows, what is missing of them counting as
    average; `session_weight` of that is given. What somebody had remembered is all of its session: of its own
    score `remembered_weight` is given.
    """
    scores: dict[str, list[float]] = {}
    files = [{file for file, _ in each.lines} for each in candidates]
    for each, own in zip(candidates, files):
        for file in own:
            scores.setdefault(file, []).append(each.score)
    most, weight = int(numbers["session_rows"]), numbers["session_weight"]
    means = {file: math.fsum(nlargest(most, of_file)) / most for file, of_file in scores.items()}
    remembered = numbers.get("remembered_weight", 0.0)  # an index of an older version lacks it
    return [
        max(
            weight * max((means[file] for file in own), default=0.0),
            remembered * max(each.score, 0.0) if each.is_remembered else 0.0,
        )
        for each, own in zip(candidates, files)
    ]


class Group:
    """
    Rows that make one result: the first of `rows` speaks for those that say the same.

    `nearby` are others near it in the session, or on its subject, best first; `earlier` those of them
    whose place the first row took: memories of its subject that are older, or only put forward.
    """

    __slots__ = ("earlier", "nearby", "rows")

    def __init__(
        self,
        rows: Sequence[SearchCandidate],
        nearby: Sequence[SearchCandidate] = (),
        earlier: Sequence[SearchCandidate] = (),
    ) -> None:
        self.rows, self.nearby, self.earlier = list(rows), list(nearby), list(earlier)

    @property
    def all(self) -> list[SearchCandidate]:
        """Return all its rows."""
        return [*self.rows, *self.nearby]


def folded(
    candidates: Sequence[SearchCandidate],
    settings: SearchSettings,
    limit: int,
    *,
    with_nearby: bool = False,
    by_part: bool = False,
) -> list[Group]:
    """
    Return at most `limit` groups of rows, each to be shown as one result.

    Takes candidates best first. Passages of one line, a memory and the passages it rests on, and texts that
    share `duplicate_overlap` of their words become one group at the place of its best row. A memory speaks
    for its group, because it stands by itself. Two memories are folded only if their texts agree: one line
    can hold two facts. With `by_part`, the parts of a turn stay apart, and from a memory that sums them up.

    With `with_nearby`, up to `stretch_rows` further rows stand nearby: those within `stretch_lines` of the
    lines of the group's best row that score `stretch_score` of it, and memories of its subject. Of memories
    of one subject the newest speaks, and a decision before what was only put forward; before a turn in which
    the assistant asks, the best one near it that was said after it.
    """
    groups: list[_Folding] = []
    in_texts: dict[str, int] = {}
    for candidate in candidates:
        for word in word_set(candidate.text):
            in_texts[word] = in_texts.get(word, 0) + 1
    # The groups that may say the same, by a line or a word that they share: most candidates share neither.
    sharing: dict[object, set[int]] = {}
    for candidate in candidates:
        words = word_set(candidate.text)
        likely = {at for key in (*words, *candidate.lines) if key in sharing for at in sharing[key]}
        home = next((at for at in sorted(likely) if groups[at].takes(candidate, words)), None)
        if home is not None:
            for key in groups[home].add(candidate, words, in_texts):
                sharing.setdefault(key, set()).add(home)
            continue
        hosts = (group for group in groups if with_nearby and group.fits_nearby(candidate))
        group = next(hosts, None)
        if group is not None:
            group.nearby.append(candidate)
        elif len(groups) < limit:
            groups.append(_Folding(candidate, settings, by_part=by_part))
            for key in groups[-1].add(candidate, words, in_texts):
                sharing.setdefault(key, set()).add(len(groups) - 1)
    ordered = _in_force_first(groups, settings.numbers["outcome_score"]) if with_nearby else groups
    return [group.as_group() for group in ordered]


class _Folding:
    def __init__(self, best: SearchCandidate, settings: SearchSettings, *, by_part: bool) -> None:
        self._by_part = by_part
        self._best, self._numbers, self._stop_words = best, settings.numbers, settings.dropped
        self._rows: list[SearchCandidate] = []
        self._lines: set[Line] = set()
        self._words: list[frozenset[str]] = []
        self.nearby: list[SearchCandidate] = []

    def takes(self, candidate: SearchCandidate, words: frozenset[str]) -> bool:
        """Return whether a row says what the group says."""
        if any(share_of_all(words, own) >= self._numbers["duplicate_overlap"] for own in self._words):
            return True
        head = self._rows[0]
        if self._lines.isdisjoint(candidate.lines) or (head.is_memory and candidate.is_memory):
            return False
        if not self._by_part:
            return True
        return head.is_memory != candidate.is_memory and not (head.sums_up or candidate.sums_up)

    def add(
        self, candidate: SearchCandidate, words: frozenset[str], in_texts: Mapping[str, int]
    ) -> list[object]:
        """
        Take in a row that says the same; return its lines, and words of which a row that says it has one.

        These are so many of its words that no text with enough words in common lacks all of them: those that
        the fewest texts have.
        """
        at = 0 if self._rows and candidate.is_memory and not self._rows[0].is_memory else len(self._rows)
        self._rows.insert(at, candidate)
        self._words.insert(at, words)
        self._lines |= candidate.lines
        telling = int((1 - self._numbers["duplicate_overlap"]) * len(words)) + 1
        return [*sorted(words, key=lambda word: in_texts[word])[:telling], *candidate.lines]

    def fits_nearby(self, candidate: SearchCandidate) -> bool:
        """Return whether a row belongs below the group's own, and there is room for it."""
        head = self._rows[0]
        is_of_subject = self.is_of_subject(head, candidate)
        if is_of_subject and _precedence(candidate) > _precedence(head):
            return True  # it will lead, so there is room for it
        if len(self.nearby) >= int(self._numbers["stretch_rows"]):
            return False
        is_good = candidate.score >= self._numbers["stretch_score"] * self._best.score
        return (is_good and self._is_near(candidate)) or is_of_subject

    def _is_near(self, candidate: SearchCandidate) -> bool:
        most = self._numbers["stretch_lines"]
        return any(
            file == own_file and abs(line - own_line) <= most
            for file, line in candidate.lines
            for own_file, own_line in self._best.lines
        )

    def is_of_subject(self, head: SearchCandidate, candidate: SearchCandidate) -> bool:
        """Return whether two memories are of one subject."""
        if not (head.is_memory and candidate.is_memory) or head.is_record or candidate.is_record:
            return False
        own, other = (_subject_of(each.text, self._stop_words) for each in (head, candidate))
        share = self._numbers["subject_share"]
        return is_same_subject(own, other, share=share, least_words=_SUBJECT_WORDS)

    @property
    def score(self) -> float:
        """Return the score of its best row."""
        return self._best.score

    @property
    def lead(self) -> SearchCandidate:
        """Return the row that speaks for the group: of the memories of its subject the one that holds now."""
        newest = max((self._rows[0], *self._same), key=_precedence)
        return newest if _precedence(newest) > _precedence(self._rows[0]) else self._rows[0]

    @property
    def _same(self) -> list[SearchCandidate]:
        return [each for each in self.nearby if self.is_of_subject(self._rows[0], each)]

    @property
    def _after_the_question(self) -> SearchCandidate | None:
        """Return the best row below a question of the assistant that was said after it, and asks nothing."""
        if not self._rows[0].is_asking or self._rows[0].is_persons:
            return None
        return next((each for each in self.nearby if not each.is_asking and self._follows(each)), None)

    def _follows(self, candidate: SearchCandidate) -> bool:
        return any(
            file == own_file and line > own_line
            for file, line in candidate.lines
            for own_file, own_line in self._rows[0].lines
        )

    @property
    def _newest_alike(self) -> SearchCandidate:
        """Return the newest of the rows that say the same as the first: where they differ, it holds."""
        head, words = self._rows[0], self._words[0]
        same = (
            row
            for row, own in zip(self._rows, self._words)
            if (row.is_memory, row.is_persons) == (head.is_memory, head.is_persons)
            and share_of_all(own, words) >= self._numbers["duplicate_overlap"]
        )
        return max(same, key=lambda row: row.updated_at)

    def as_group(self) -> Group:
        """Return the group with the memory that holds now in the first place."""
        if self._by_part:
            newest = self._newest_alike
            self._rows.sort(key=lambda row: row is not newest)
        head, lead = self._rows[0], self.lead
        earlier = [each for each in (head, *self._same) if _precedence(each) < _precedence(lead)]
        if lead is head:
            lead = self._after_the_question or head
        if lead is head:
            return Group(self._rows, self.nearby, earlier)
        below = [each for each in self.nearby if each is not lead]
        return Group([lead], [*self._rows, *below], earlier)


def _precedence(candidate: SearchCandidate) -> tuple[int, int]:
    """Return what a memory holds by: its validity, and of equal ones the newer the more."""
    return candidate.validity, candidate.updated_at


def _in_force_first(groups: list[_Folding], share: float) -> list[_Folding]:
    """
    Return groups in their order, but what no longer holds below the next group that took its place.

    Of a statement that its session went past that is one of the same session that stands later, holds, and
    scores `share` of it; of a proposal a decision on its subject.
    """
    ordered = list(groups)
    for group in groups:
        if group.lead.validity >= STATED:
            continue
        at = ordered.index(group)
        later = (place for place in range(at + 1, len(ordered)) if _took_place(ordered[place], group, share))
        place = next(later, None)
        if place is not None:
            ordered.insert(place, ordered.pop(at))
    return ordered


def _took_place(group: _Folding, before: _Folding, share: float) -> bool:
    new, old = group.lead, before.lead
    if new.id == old.row.get("closed_by"):
        return True
    if old.validity == PROPOSED:
        return new.validity == DECIDED and group.is_of_subject(old, new)
    holds = new.is_memory and new.validity >= STATED and group.score >= share * before.score
    return holds and any(
        file == own_file and line > own_line for file, line in new.lines for own_file, own_line in old.lines
    )


@lru_cache(maxsize=2_000)
def _subject_of(text: str, stop_words: frozenset[str]) -> Subject:
    return subject_in(text, stop_words)
