"""
A search: what the memories and the words of past sessions say to a question, best first.

The prompt hook asks it over a file that it opens itself, recall over the engine's connection and, where there
is a model, with what that knows of each row's meaning. Without a model both get the same.
"""

from __future__ import annotations

import time
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from .index import Part, Row
    from .question import SearchQuestion

    # Takes the name of a table and the keys found by words; returns the cosine of these, where they have a
    # vector, and of the nearest rows by meaning.
    Similar = Callable[[str, Collection[str]], Mapping[str, float]]
    # Takes the name of a table and a row; returns whether it may be found.
    Admits = Callable[[str, Row], bool]

from .index import (
    COMMANDS,
    MEMORIES,
    PASSAGES,
    SECTION_ROWS,
    STATE_TYPES,
    all_rows,
    best_rows,
    index_parts,
    labelled_rows,
    rows_by_key,
    rows_by_number,
    section_label,
)
from .question import DECIDED as ASKED_DECIDED
from .question import OPEN, WORK, certainty_of
from .ranking import DECIDED, OVERTAKEN, STATED, Group, SearchCandidate, comparable, folded, ranked
from .ranking import PROPOSED as PUT_FORWARD
from .statements import (
    CHANGED_SINCE,
    PROPOSED,
    asks_anything,
    ends_asking,
    is_known,
    is_lead_in,
    is_proposal,
    news_in,
    outcome_parts,
    reason_in,
    statement_in,
)
from .text import PEOPLE_KINDS, heading, row_text, share_of_all, word_set, words_in

KEY_COLUMNS = {MEMORIES: "memory_id", PASSAGES: "passage_id"}
# A memory taken back by a person, or pruned, is not an answer; one merged into another is shown as that one.
HIDDEN_STATUSES = ("superseded", "pruned")
# Rows looked at for folding, by result asked for: in the labelled sessions a result takes up 1.4 rows.
ROWS_A_RESULT = 6
# Rows looked at for one that may meet a limit: of a project of 6,000 passages all.
ROWS_A_KEPT_ROW = 20


class Place:
    """Where something was said: lines of a transcript from 1, best first; microseconds since 1970."""

    __slots__ = ("file", "lines", "said_at", "session_id")

    def __init__(self, session_id: str, file: str, lines: Sequence[int], said_at: int | None) -> None:
        self.session_id, self.file, self.lines, self.said_at = session_id, file, tuple(lines), said_at


class NearbyRow:
    """
    A row near a result in its session, or on its subject, that bears on the question too.

    `is_earlier` says that it is a memory of the result's subject that was said before it.
    """

    __slots__ = ("evidence", "id", "is_earlier", "is_memory", "row", "statement")

    def __init__(self, candidate: SearchCandidate, statement: str, is_earlier: bool) -> None:
        self.id, self.is_memory, self.row = candidate.id, candidate.is_memory, candidate.row
        self.statement, self.is_earlier = statement, is_earlier
        self.evidence = merged(_evidence(candidate))


class SearchResult:
    """
    One result: a memory or a passage, with what was folded into it.

    `row` has its columns. `score` orders the results of one question and means nothing across questions.
    """

    def __init__(self, group: Group, question: SearchQuestion) -> None:
        lead = group.rows[0]
        self._group, self._question = group, question
        self.id, self.is_memory, self.row = lead.id, lead.is_memory, lead.row
        self.score = max(other.score for other in group.all)

    # Found out where somebody asks for it: at a prompt most results are never told.
    @cached_property
    def statement(self) -> str:
        """What of it bears on the question."""
        return _statement(self._group.rows[0], self._question)

    @cached_property
    def passage(self) -> str | None:
        """The best passage that was folded into a memory."""
        passages = (other.text for other in self._group.rows[1:] if not other.is_memory)
        return next(passages, None) if self.is_memory else None

    @cached_property
    def quote(self) -> str:
        """What of that passage bears on the question."""
        if not self.passage:
            return ""
        # What the memory does not say: its words are mostly those of the question too.
        return statement_in(news_in(self.passage, [self.statement]), self._question.asked)

    @cached_property
    def why(self) -> str:
        """The reason, if the statement does not say it."""
        return _why(self._group, f"{self.statement} {self.quote}", self._question)

    @cached_property
    def rejected(self) -> str:
        """What was turned down, if the statement does not say it."""
        rejected = str(self.row.get("rejected") or "") if self.is_memory else ""
        return "" if is_known(rejected, self.statement) else rejected

    @cached_property
    def nearby(self) -> list[NearbyRow]:
        """What else bears on the question, best first."""
        earlier = self._group.earlier
        return [
            NearbyRow(other, _statement(other, self._question), other in earlier)
            for other in self._group.nearby
        ]

    @cached_property
    def evidence(self) -> list[Place]:
        """Where it was said."""
        return merged(place for other in self._group.rows for place in _evidence(other))


def find(
    connection: sqlite3.Connection | None,
    scopes: Collection[str],
    question: SearchQuestion,
    *,
    limit: int,
    with_nearby: bool = True,
    by_part: bool = False,
    admits: Admits | None = None,
    similar: Similar | None = None,
    whole: tuple[float, float] | None = None,
    least_certainty: float = 1.0,
) -> list[SearchResult]:
    """
    Return at most `limit` results for a question out of the memories and passages of `scopes`, best first.

    Nothing is returned if it is less sure than `least_certainty` that any of them answers (`certainty_of`,
    which `whole` is for); how sure it is stands in the question. Superseded, pruned and merged memories are
    left out, archived ones found; a memory of external trust only with evidence of its source. With
    `with_nearby`, what bears on the question close together in a session is one result; with `by_part` each
    part of a long turn is one. Of each list more rows are read where only some are admitted.
    """
    numbers = question.settings.numbers
    wanted = int(numbers["candidates"]) * (1 if admits is None else ROWS_A_KEPT_ROW)
    candidates: list[SearchCandidate] = []
    for name in (MEMORIES, PASSAGES) if connection is not None else ():
        candidates += _candidates(connection, scopes, name, question, wanted, admits, similar)
    looked_at = ranked(candidates, numbers)[: limit * ROWS_A_RESULT]
    for each in looked_at:
        each.is_asking = not each.is_memory and _asks(each)
    groups = folded(looked_at, question.settings, limit, with_nearby=with_nearby, by_part=by_part)
    asked, rows = question.asked, [each for group in groups for each in group.all]
    texts = [each.text for each in rows]
    asked.learn(texts)
    question.answered_in(texts)
    groups = [_led_by_own_words(group, question) for group in groups]
    nearness = (asked.nearness(_indexed(each), each.similarity) for each in rows)
    searched = [part.words for name in KEY_COLUMNS for part in index_parts(connection, scopes, name)]
    question.certainty = certainty_of(asked, nearness, numbers, whole, searched_words=sum(searched))
    if question.certainty < least_certainty:
        return []
    results = [SearchResult(group, question) for group in groups]
    return shown_once(results) if with_nearby else results


# A lead with less of the question's words than this share of the best row beside it says something else.
_LEAD_SHARE = 0.5


def _led_by_own_words(group: Group, question: SearchQuestion) -> Group:
    """Return a group whose lead has words of the question itself, not only beside it."""
    asked, lead = question.asked, group.rows[0]
    shares = [(asked.share_in(_indexed(each)), each) for each in group.nearby]
    best = max((share for share, _ in shares), default=0.0)
    if not best or asked.share_in(_indexed(lead)) >= _LEAD_SHARE * best or lead.row.get("valid_until"):
        return group
    leader = next(each for share, each in shares if share == best)
    if leader.is_asking or leader.validity < STATED:
        return group
    below = [*group.rows, *(each for each in group.nearby if each is not leader)]
    return Group([leader], below, [each for each in group.earlier if each is not leader])


def _candidates(
    connection: sqlite3.Connection | None,
    scopes: Collection[str],
    name: str,
    question: SearchQuestion,
    wanted: int,
    admits: Admits | None,
    similar: Similar | None,
) -> list[SearchCandidate]:
    """Return the rows of one table that any list names and that may be shown."""
    assert connection is not None
    parts = index_parts(connection, scopes, name)
    count = sum(part.rows for part in parts)
    scores = dict(best_rows(connection, parts, question.terms, wanted))
    rows = rows_by_number(connection, parts, scores)
    key = KEY_COLUMNS[name]
    near = similar(name, [str(row[key]) for row in rows.values()]) if similar is not None and count else {}
    rows.update(rows_by_key(connection, parts, near.keys() - {row[key] for row in rows.values()}))
    candidates = []
    for number, row in rows.items():
        if (name == MEMORIES and not is_shown(row)) or (admits is not None and not admits(name, row)):
            continue
        candidate = candidate_of(name, row)
        if number in scores:
            candidate.lexical = comparable(scores[number], count)
        candidate.similarity = near.get(candidate.id)
        candidates.append(candidate)
    return _with_closers(candidates, connection, parts, admits) if name == MEMORIES else candidates


def _with_closers(
    candidates: list[SearchCandidate],
    connection: sqlite3.Connection,
    parts: Sequence[Part],
    admits: Admits | None,
) -> list[SearchCandidate]:
    """Return the memories with those that ended one of them: what holds now is as near as what it ended."""
    known = {each.id: each for each in candidates}
    ended = [each for each in candidates if each.row.get("valid_until") and each.row.get("closed_by")]
    missing = {str(each.row["closed_by"]) for each in ended} - known.keys()
    for row in rows_by_key(connection, parts, missing).values() if missing else ():
        if is_shown(row) and (admits is None or admits(MEMORIES, row)):
            known[row["memory_id"]] = candidate_of(MEMORIES, row)
    for each in ended:
        closer = known.get(each.row["closed_by"])
        if closer is not None:
            closer.lexical = max(closer.lexical or 0.0, each.lexical or 0.0) or None
    return list(known.values())


# Sections read after a row to find what followed it: of a longer answer nobody knows the end.
_SECTIONS_AHEAD = 3


class _Sessions:
    """The passages of sessions in their order, read by sections."""

    def __init__(self, connection: sqlite3.Connection, parts: Sequence[Part]) -> None:
        self._connection, self._parts = connection, parts
        self._sections: dict[tuple[str, int], list[Row]] = {}

    def after(self, row: Row) -> Iterator[Row | None]:
        """Yield the passages after a row, then None if the session goes on beyond what is read."""
        first = row["seq"] // SECTION_ROWS
        for at in range(first, first + _SECTIONS_AHEAD + 1):
            section = self._section(row["file"], at)
            yield from (other for other in section if other["seq"] > row["seq"])
            if not section:
                return
        yield None

    def _section(self, file: str, at: int) -> list[Row]:
        key = file, at
        if key not in self._sections:
            rows = labelled_rows(self._connection, self._parts, section_label(file, at))
            own = (row for row in rows if row["file"] == file)
            self._sections[key] = sorted(own, key=lambda row: row["seq"])
        return self._sections[key]


def find_sequels(
    connection: sqlite3.Connection,
    scopes: Collection[str],
    results: Iterable[SearchResult],
    question: SearchQuestion,
) -> list[tuple[SearchResult, SearchResult]]:
    """
    Return what some results came to in their sessions, each with the result that it follows.

    Of a passage that is the assistant's last turn before a person spoke again, what the person said then, and
    the assistant's last turn in answer to that. A memory says itself what its session came to.
    """
    sessions = _Sessions(connection, index_parts(connection, scopes, PASSAGES))
    return [
        (SearchResult(Group([candidate_of(PASSAGES, row)]), question), result)
        for result in results
        if not result.is_memory
        for row in _sequel_rows(result.row, sessions.after(result.row))
    ]


def _sequel_rows(start: Row, rows: Iterable[Row | None]) -> list[Row]:
    before: list[Row] = []
    reply: list[Row] = []
    answer: list[Row] = []
    for row in rows:
        if row is None:
            # Where an answer ends is not known: then it has no last turn.
            return [*_last_turn(before), *reply] if reply else []
        if row["line"] == start["line"]:
            continue
        if row["kind"] not in PEOPLE_KINDS:
            (answer if reply else before).append(row)
        elif answer or (reply and row["line"] != reply[0]["line"]):
            break
        else:
            reply.append(row)
    return [*_last_turn(before), *reply, *_last_turn(answer)]


def _last_turn(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["line"] == rows[-1]["line"]]


def commands(
    connection: sqlite3.Connection | None, scopes: Collection[str], question: SearchQuestion, *, limit: int
) -> list[Row]:
    """
    Return at most `limit` commands that ran with success and do what a question speaks of, best first.

    Each is a row of passages, with what it is for before the command in backticks. It has `command_share` of
    the weight of the question's words, or `command_words` of these.
    """
    numbers, asked = question.settings.numbers, question.asked
    parts = index_parts(connection, scopes, COMMANDS)
    if connection is None or not parts:
        return []
    scores = dict(best_rows(connection, parts, question.terms, limit * ROWS_A_RESULT))
    rows = rows_by_number(connection, parts, scores)
    matches: list[tuple[frozenset[str], Row]] = []
    for number in sorted(rows, key=lambda number: (-scores[number], -(rows[number]["said_at"] or 0))):
        row = rows[number]
        near = asked.nearness(str(row["text"]), None)
        is_near = near.share >= numbers["command_share"] or len(near.words) >= numbers["command_words"]
        words = word_set(str(row["text"]))
        if is_near and all(share_of_all(words, own) < numbers["duplicate_overlap"] for own, _ in matches):
            matches.append((words, row))
    return [row for _, row in matches[:limit]]


def listed_records(
    connection: sqlite3.Connection | None,
    scopes: Collection[str],
    kind: str,
    types: Collection[str] = (),
    *,
    limit: int,
    admits: Admits | None = None,
) -> list[Row]:
    """
    Return at most `limit` memories of what a question lists (LISTINGS), the newest first.

    What was done and what is open is in the records of sessions, all else in memories of these `types`; what
    was decided in the decisions and in what a person said.
    """
    if connection is None:
        return []
    parts = index_parts(connection, scopes, MEMORIES)
    is_of_sessions = kind in (OPEN, WORK)
    rows = labelled_rows(connection, parts, "outcome") if is_of_sessions else all_rows(connection, parts)
    shown = [
        row
        for row in rows
        if is_shown(row)
        and row["trust"] != "external"
        and _is_listed(row, kind, types)
        and (admits is None or admits(MEMORIES, row))
    ]
    return sorted(shown, key=lambda row: (-(row["updated_at"] or 0), row["memory_id"]))[:limit]


def _is_listed(row: Row, kind: str, types: Collection[str]) -> bool:
    if kind == OPEN:
        return bool(outcome_parts(str(row["text"])).get("open"))
    is_settled = kind != ASKED_DECIDED or row["memory_type"] == "decision" or row["trust"] == "user"
    return kind == WORK or (is_settled and row["memory_type"] in types)


def listed_turns(
    connection: sqlite3.Connection | None, scopes: Collection[str], *, limit: int, admits: Admits | None
) -> list[Row]:
    """Return at most `limit` passages of what people asked, the newest first."""
    if connection is None:
        return []
    rows = all_rows(connection, index_parts(connection, scopes, PASSAGES))
    asked = [row for row in rows if row["kind"] in (*PEOPLE_KINDS, "program")]
    shown = [row for row in asked if admits is None or admits(PASSAGES, row)]
    return sorted(shown, key=lambda row: (-(row["said_at"] or 0), row["passage_id"]))[:limit]


def candidate_of(name: str, row: Row) -> SearchCandidate:
    """Return what ranking and folding need of a row of memories or passages."""
    text = str(row["text"])
    if name == MEMORIES:
        return SearchCandidate(
            row["memory_id"],
            text,
            frozenset((place["file"], line) for place in row["evidence"] or () for line in place["lines"]),
            is_memory=True,
            updated_at=row["updated_at"] or 0,
            validity=_validity(row, text),
            is_record=row["memory_type"] == "outcome",
            sums_up=row["memory_type"] in STATE_TYPES,
            is_remembered=row["source_type"] == "explicit",
            row=row,
        )
    is_persons = row["kind"] in PEOPLE_KINDS
    return SearchCandidate(
        row["passage_id"],
        text,
        frozenset({(row["file"], row["line"])}),
        place=(row["file"], row["seq"], row["line"]),
        updated_at=row["said_at"] or 0,
        is_persons=is_persons,
        is_lead_in=not is_persons and is_lead_in(text),
        row=row,
    )


def is_shown(memory: Row) -> bool:
    """Return whether a memory may be told: a valid one; an external one with its source, or as imported."""
    return (
        memory["status"] not in HIDDEN_STATUSES
        and memory["merged_into"] is None
        and (memory["trust"] != "external" or bool(memory["evidence"]) or memory["source_type"] == "import")
    )


def _validity(memory: Row, text: str) -> int:
    if text.endswith(CHANGED_SINCE) or memory.get("valid_until"):
        return OVERTAKEN
    if text.startswith(PROPOSED):
        return PUT_FORWARD
    return DECIDED if memory["memory_type"] == "decision" else STATED


def _asks(turn: SearchCandidate) -> bool:
    return asks_anything(turn.text) if turn.is_persons else ends_asking(turn.text)


def _indexed(candidate: SearchCandidate) -> str:
    row = candidate.row
    return row_text(row, "" if candidate.is_memory else heading(row["kind"], utc_day(row["said_at"])))


def utc_day(instant: object) -> tuple[int, int, int] | None:
    """Return year, month and day (UTC) of an instant in microseconds since 1970."""
    if not isinstance(instant, int):
        return None
    day = time.gmtime(instant // 1_000_000)
    return day.tm_year, day.tm_mon, day.tm_mday


def _statement(candidate: SearchCandidate, question: SearchQuestion) -> str:
    """Return what of a row bears on a question; of a turn that only puts something forward it says so."""
    if candidate.is_memory:
        return candidate.text
    statement = statement_in(candidate.text, question.asked)
    is_said = statement and not candidate.is_persons and candidate.row.get("kind") != "program"
    is_proposed = is_said and is_proposal(statement, question.pattern("suggests"))
    return f"{PROPOSED}{statement}" if is_proposed else statement


def _why(group: Group, shown: str, question: SearchQuestion) -> str:
    """Return the reason of what leads a group: its own, else one that the turns of its session give."""
    own = str(group.rows[0].row.get("reason") or "")
    if own and not is_known(own, shown):
        return own
    if not question.asks_why:
        return ""
    lead = group.rows[0]
    files = {file for file, _ in lead.lines}
    texts = [
        each.text
        for each in group.all
        if each is lead or (not each.is_memory and any(file in files for file, _ in each.lines))
    ]
    return reason_in(texts, shown, question.asked, question.pattern("gives_reason"))


def _evidence(candidate: SearchCandidate) -> list[Place]:
    row = candidate.row
    places = row["evidence"] or () if candidate.is_memory else ({**row, "lines": (row["line"],)},)
    return [Place(each["session_id"], each["file"], each["lines"], each["said_at"]) for each in places]


def merged(places: Iterable[Place]) -> list[Place]:
    """Return the places of a group in their order, one entry per transcript, each line once."""
    by_file: dict[str, Place] = {}
    for place in places:
        before = by_file.get(place.file)
        if before is None:
            by_file[place.file] = place
            continue
        new = [line for line in place.lines if line not in before.lines]
        by_file[place.file] = Place(before.session_id, place.file, (*before.lines, *new), before.said_at)
    return list(by_file.values())


def shown_once(results: list[SearchResult]) -> list[SearchResult]:
    """
    Return results below whose statements stands only what was not shown above: a turn is shown once.

    Left out are sentences of a passage, of a reason and of what is nearby that were shown. If something
    nearby says the same as its result, the result rests on its lines.
    """
    above: list[str] = []
    for result in results:
        own = [result.statement]
        result.why = news_in(result.why, [*own, *above])
        result.quote = news_in(result.quote, [*own, result.why, *above])
        own += [result.why, result.quote]
        nearby, evidence = [], list(result.evidence)
        for each in result.nearby:
            news = _news_of(each, [*own, *above])
            if news:
                each.statement = news
                nearby.append(each)
                own.append(news)
            elif any(is_known(each.statement, text) for text in own):
                evidence += each.evidence
        above += own
        result.nearby, result.evidence = nearby, merged(evidence)
    return results


def _news_of(nearby_row: NearbyRow, shown: Sequence[str]) -> str:
    # Two facts may differ in a word: a memory goes only if its very words were shown.
    if nearby_row.is_memory:
        own, words = word_set(nearby_row.statement), f" {' '.join(words_in(nearby_row.statement))} "
        is_there = any(own <= word_set(text) and words in f" {' '.join(words_in(text))} " for text in shown)
        return "" if is_there else nearby_row.statement
    return news_in(nearby_row.statement, shown)
