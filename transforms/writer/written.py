"""Events of sessions that a language model read: its facts take the place of the rules'; what it may name."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.evidence.statements import OUTCOME_PARTS
from cortex.transforms.extract.language.candidate import EXTRACTOR_VERSION, TAG_LAYER, Turn, line_of
from cortex.transforms.extract.language.phrases import FILE
from cortex.transforms.extract.language.statements import cut_between
from cortex.transforms.extract.outcome import UNSAID, is_work, subject_of_session
from cortex.transforms.extract.prose import SUREST
from cortex.transforms.identity import content_id, event_id
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import EPOCH, EVENTS, TRUSTS, Row
from cortex.transforms.words.prompt_injection import OUTCOMES, REASONS, injection_reason
from cortex.transforms.words.sentences import STATEMENT, sentences, shortened
from cortex.transforms.writer.answer import (
    BEYOND,
    FACT_KINDS,
    REPEATED,
    Checked,
    SessionAnswer,
    SessionTurns,
    WrittenFact,
    WrittenOutcome,
    checked_facts,
    parsed_answer,
)
from cortex.transforms.writer.request import ModelRequest, Reply, version_of
from cortex.transforms.writer.session import KnownMemory, SessionRequest, facts_most

LAYER_PREFIX = "llm:"
SESSION_PURPOSE = "session"
_STATEMENT_CHARS, _CAVEAT_CHARS, _WHY_CHARS, _INSTEAD_CHARS = 450, 150, 240, 180
# A model counts characters badly: of 33 recorded answers seven were cut in the middle of what was asked for.
# So there is room for half as much again, and what is longer ends with a whole sentence.
_GOAL_CHARS, _OUTCOME_CHARS, _PROVED_CHARS, _OPEN_CHARS = 140, 320, 240, 240
FILES_OF_FACT = 8
LINES_CITED = 12
# What is left out stays below what is shown by this much at least, so that rounding shows nothing of it.
HIDDEN_BY = 0.01
# What is refused, over before the session ended or unsure is stored and never shown.
REFUSED_CONFIDENCE = 0.0
OVER = ("done", "taken_back")
_REFUSED = "refused: "
_PART = re.compile(rf"\b({'|'.join(OUTCOME_PARTS)}): ")


@dataclass(frozen=True)
class SessionReply:
    """A usable reply about one session: its row of REPLIES and the answer that it holds."""

    row: Row
    answer: SessionAnswer

    @property
    def layer(self) -> str:
        """What saw the facts, as events name it."""
        return f"{LAYER_PREFIX}{self.row['model']}@{self.row['prompt']}"


# What REPLIES say of an answer that is of no session, and of one that cost nothing.
_OF_NO_TURNS: Row = {"session_id": "", "turns_hash": "", "turn_ids": [], "turn_count": 0}
FREE: Row = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}


def hash_of_turns(turn_ids: Sequence[str]) -> str:
    """Return what says whether a session has other turns than a reply read."""
    return content_id("turns read", *turn_ids)


def reply_row(asked: SessionRequest, reply: Reply, asked_at: datetime, turn_count: int = 0) -> Row:
    """
    Return the row of REPLIES for the answer to a request about a session.

    `turn_count` is the number of all turns that the session had.
    """
    return {
        **answer_row(asked.project_id, asked.request, reply, asked.known, asked_at),
        "session_id": asked.session_id,
        "turns_hash": hash_of_turns(asked.turn_ids),
        "turn_ids": list(asked.turn_ids),
        "turn_count": turn_count,
    }


def answer_row(
    scope: str, request: ModelRequest, reply: Reply, known: Sequence[str], asked_at: datetime
) -> Row:
    """Return the row of REPLIES for the answer to a question over memories, `known`: it is of no session."""
    return {
        **_OF_NO_TURNS,
        "request_id": request.request_id,
        "project_id": scope,
        "known": list(known),
        "purpose": request.purpose,
        "model": request.model,
        "provider": reply.provider,
        "prompt": request.prompt,
        "text": redact(reply.text)[0],
        "stop_reason": reply.stop_reason,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "usd": reply.usd,
        "asked_at": asked_at,
    }


def unasked_row(project_id: str, session_id: str, turn_count: int, prompt: str, noted_at: datetime) -> Row:
    """Return the row of REPLIES of a session as it is now, about which there is nothing to ask."""
    request_id = content_id("not asked", project_id, session_id, str(turn_count), prompt)
    return {
        **_OF_NO_TURNS,
        "request_id": request_id,
        "project_id": project_id,
        "session_id": session_id,
        "turn_count": turn_count,
        "known": [],
        "purpose": SESSION_PURPOSE,
        "model": "",
        "provider": "none",
        "prompt": prompt,
        "text": "",
        "stop_reason": "not asked",
        **FREE,
        "asked_at": noted_at,
    }


def replies_in_force(
    replies: pa.Table, sessions: Mapping[str, Iterable[str]], prompt: str
) -> dict[str, SessionReply]:
    """
    Return, by session, the reply whose facts count, of REPLIES rows and each session's turn ids.

    That is the one that read the session furthest; then one of the version named, or of the oldest: a second
    reading of the same turns is a proposal until its version is named. Then the newest. One that read a turn
    that is not there does not count: on an earlier day it was not yet given, and forgotten words took their
    reply with them.
    """
    chosen: dict[str, tuple[tuple[int, bool, int, int, datetime, str], SessionReply]] = {}
    for row in replies.to_pylist():
        turns = sessions.get(row["session_id"])
        answer = parsed_answer(row["text"]) if row["purpose"] == SESSION_PURPOSE and turns else None
        if answer is None or turns is None:
            continue
        by_version = (row["prompt"] == prompt, -version_of(row["prompt"]))
        key = (row["turn_count"], *by_version, len(row["turn_ids"]), row["asked_at"], row["request_id"])
        is_whole = set(row["turn_ids"]) <= set(turns)
        if is_whole and (row["session_id"] not in chosen or key > chosen[row["session_id"]][0]):
            chosen[row["session_id"]] = (key, SessionReply(row, answer))
    return {session_id: reply for session_id, (_, reply) in chosen.items()}


def with_written(
    events: pa.Table,
    turns: pa.Table,
    replies: pa.Table,
    policy: Policy,
    prompt: str,
    settled: Iterable[str] = (),
) -> pa.Table:
    """
    Return EVENTS of whole sessions with the facts of their replies in the place of the rules'.

    Takes the EVENTS that the rules see in `turns` (TURNS), REPLIES rows and the turns that are settled. The
    rules' facts of turns that a reply read, plans included, stay in the log and are not shown; what was said
    on purpose and traces of what was done stay as they are. A session with settled turns keeps what was
    chosen once.
    """
    by_session: dict[str, dict[str, Row]] = defaultdict(dict)
    for turn in turns.to_pylist() if replies.num_rows else ():
        by_session[turn["session_id"]][turn["turn_id"]] = turn
    fixed = set(settled)
    open_sessions = {name: rows for name, rows in by_session.items() if fixed.isdisjoint(rows)}
    in_force = replies_in_force(replies, open_sessions, prompt)
    if not in_force:
        return events
    least_shown = policy.threshold("shown_min_confidence")
    rows: dict[str, Row] = {}
    for row in events.to_pylist():
        reply = in_force.get(row["session_id"])
        if reply is not None and _gives_way(row, by_session[row["session_id"]], reply):
            row["confidence"] = min(row["confidence"], round(least_shown - HIDDEN_BY, 3))
        rows[row["event_id"]] = row
    for session_id, reply in sorted(in_force.items()):
        for row in written_rows(reply, by_session[session_id], policy):
            rows.setdefault(row["event_id"], row)
    return EVENTS.of([rows[name] for name in sorted(rows)])


def written_rows(reply: SessionReply, turns: Mapping[str, Row], policy: Policy) -> list[Row]:
    """Return the EVENTS rows of one reply, refused facts included; `turns` are the session's, by id."""
    read = [turns.get(name) for name in reply.row["turn_ids"]]
    evidence = SessionTurns(read)
    facts = checked_facts(reply.answer.facts, evidence, facts_most(len(read), policy), policy)
    rows = [
        _fact_row(checked, position, reply, read, policy) for position, checked in enumerate(facts, start=1)
    ]
    # One that is refused for its quote may have the words, and so the id, of one that is believed.
    rows.sort(key=lambda row: row["confidence"] == REFUSED_CONFIDENCE)
    is_working = has_worked(reply.answer.outcome, read, any(not each.refused for each in facts))
    return [*rows, *(_outcome_rows(reply, evidence, policy) if is_working else [])]


def _gives_way(event: Row, turns: Mapping[str, Row], reply: SessionReply) -> bool:
    """Return whether an event of the rules makes a memory by itself, of turns that the reply read."""
    if event["memory_type"] is None or event["layer"] == TAG_LAYER:
        return False
    turn = turns.get(event["turn_id"])
    return turn is not None and _was_read(turn, turns, reply)


def _was_read(turn: Row, turns: Mapping[str, Row], reply: SessionReply) -> bool:
    """Return whether a turn is one of those read, or stands before the last of them."""
    names = reply.row["turn_ids"]
    if turn["turn_id"] in names:
        return True
    last = next((turns[name] for name in reversed(names) if name in turns), None)
    if last is None:
        return False
    if turn["file"] == last["file"]:
        return bool(turn["line"] <= last["line"])
    return bool(turn["said_at"] and last["said_at"] and turn["said_at"] <= last["said_at"])


def _fact_row(
    checked: Checked, position: int, reply: SessionReply, read: Sequence[Row | None], policy: Policy
) -> Row:
    fact = checked.fact
    event_type, memory_type = FACT_KINDS.get(fact.fact_type, FACT_KINDS["context"])
    statement = statement_of(fact) or "(no statement)"
    rests_on = checked.turns or tuple(turn for turn in read if turn is not None)[:1]
    is_borrowed = checked.trust != "user" and injection_reason(fact.why, policy, (REASONS,))
    reason = "" if is_borrowed else shortened(fact.why, _WHY_CHARS)
    row = _row(reply, event_type, memory_type, statement, rests_on, policy)
    row.update(
        reason=(f"{_REFUSED}{checked.refused}" if checked.refused else reason) or None,
        rejected=shortened(fact.instead_of, _INSTEAD_CHARS) or None,
        files=list(dict.fromkeys(FILE.findall(statement)))[:FILES_OF_FACT],
        confidence=_confidence(checked, policy.threshold("shown_min_confidence")),
        trust=checked.trust,
        category="proposed" if fact.is_global and checked.trust == "user" else "project",
        said_at=_later(row["said_at"], position),
    )
    return row


def statement_of(fact: WrittenFact) -> str:
    """Return the text of the event and of the memory that a fact makes: what limits it in brackets behind."""
    statement = cut_between(fact.statement, _STATEMENT_CHARS)
    caveat = cut_between(fact.caveat, _CAVEAT_CHARS).strip(" .()")
    return f"{statement.rstrip(' .')} ({caveat})." if statement and caveat else statement


def is_spare(event: Row) -> bool:
    """Return whether a refused fact passed the checks: another one says it, or there were enough."""
    return (event["reason"] or "").startswith((f"{_REFUSED}{REPEATED}", f"{_REFUSED}{BEYOND}"))


def _confidence(checked: Checked, least_shown: float) -> float:
    if checked.refused:
        return REFUSED_CONFIDENCE
    if checked.fact.state in OVER:
        return round(min(checked.fact.confidence, least_shown - HIDDEN_BY), 3)
    return round(min(checked.fact.confidence, SUREST), 3)


def _outcome_rows(reply: SessionReply, evidence: SessionTurns, policy: Policy) -> list[Row]:
    """Return the row of the outcome record; none if nothing was done."""
    read = [turn for turn in evidence.turns if turn is not None]
    text = outcome_text(reply.answer.outcome, evidence, policy)
    if not text:
        return []
    last = next((turn for turn in reversed(read) if turn["kind"] not in UNSAID), read[-1])
    closing = [turn for turn in reversed(read) if turn["kind"] in ("text", "prompt", "recap")][:2]
    row = _row(reply, "SESSION_OUTCOME", "outcome", text, [last, *closing], policy)
    row.update(confidence=policy.confidence("outcome"), trust="assistant", subject=subject_of_session(last))
    return [row]


def has_worked(outcome: WrittenOutcome, read: Iterable[Turn | None], has_facts: bool) -> bool:
    """
    Return whether a session leaves a record of where the work stands: not where it was only opened and left.

    The reply says so. Where its instruction did not ask, one that changed, committed and checked nothing, and
    of which no fact is believed, does not: what `git` says of the working tree is gone tomorrow.
    """
    if outcome.has_worked is not None:
        return outcome.has_worked
    return has_facts or any(
        turn is not None and turn["kind"] == "tool_call" and is_work(turn) for turn in read
    )


def outcome_text(outcome: WrittenOutcome, evidence: SessionTurns, policy: Policy) -> str:
    """
    Return an outcome record as one line, of what the session bears out.

    Left out are parts that name what it lacks or turn an assistant against its person, sentences that speak
    for the person where the session has no choice or plan of theirs, and what is proved by no result.
    """
    everywhere = range(len(evidence.turns))
    may_speak = evidence.has_settled()

    def part(words: str, chars: int) -> str:
        if not may_speak:
            spoken = sentences(words, STATEMENT)
            words = " ".join(each for each in spoken if not injection_reason(each, policy, (OUTCOMES,)))
        bare = _PART.sub(r"\1 ", cut_between(words, chars)).rstrip(" .。:;")
        return "" if evidence.missing(words, everywhere) or injection_reason(words, policy) else bare

    goal, came_of_it = part(outcome.goal, _GOAL_CHARS), part(outcome.outcome, _OUTCOME_CHARS)
    proved = part(outcome.proved, _PROVED_CHARS)
    still_open = part(outcome.still_open, _OPEN_CHARS)
    if came_of_it and proved and evidence.has_shown(proved, policy.threshold("writer_proved_words_share")):
        came_of_it += f"; proved: {proved}"
    if not (came_of_it or (goal and still_open)):
        return ""
    named = (goal, came_of_it, still_open)
    return " ".join(f"{name}: {words}." for name, words in zip(OUTCOME_PARTS, named, strict=True) if words)


def _row(
    reply: SessionReply,
    event_type: str,
    memory_type: str,
    text: str,
    rests_on: Sequence[Turn],
    policy: Policy,
) -> Row:
    """Return the row of EVENTS of what a reply says, resting on the first of its turns."""
    turn = rests_on[0]
    lines = [line_of(other) for other in rests_on if other["file"] == turn["file"]]
    return {
        "event_id": event_id(event_type, reply.layer, str(turn["turn_id"]), text),
        "project_id": turn["project_id"],
        "session_id": turn["session_id"],
        "event_type": event_type,
        "memory_type": memory_type,
        "category": "project",
        "text": text,
        "reason": None,
        "rejected": None,
        "subject": None,
        "step_status": None,
        "files": [],
        "salience": policy.salience(event_type),
        "layer": reply.layer,
        "turn_id": turn["turn_id"],
        "file": turn["file"],
        "lines": list(dict.fromkeys(lines))[:LINES_CITED],
        "said_at": turn["said_at"],
        "git_branch": turn["git_branch"],
        "git_commit": None,
        "extractor_version": EXTRACTOR_VERSION,
    }


def _later(said_at: datetime | None, position: int) -> datetime | None:
    """Return the time of one of several facts of a turn: a microsecond after the one before."""
    return said_at and said_at + timedelta(microseconds=position)


# -- The memories that a request about a session may name: what a person or a language model wrote before
# it.

KNOWN_COLUMNS = [
    "memory_id",
    "memory_type",
    "text",
    "source_type",
    "trust",
    "created_at",
    "recorded_at",
    "evidence",
]


def known_memories(
    memories: pa.Table,
    session_id: str,
    ended_at: datetime,
    read_at: Mapping[str, datetime],
    as_of: datetime | None = None,
) -> list[KnownMemory]:
    """
    Return which of a project's MEMORIES a request about a session that ended at `ended_at` may name.

    They are active, older than its end, and a person remembered or edited them or a language model wrote them
    about another session: read again, a session would otherwise find all of its own facts known. Outcome
    records and what strangers said are not among them. `as_of` leaves out what came later than that moment:
    entries by when they were noted, a model's facts by `read_at`, the moment of each session's first reply.
    """
    is_told = (pc.field("status") == "active") & (pc.field("memory_type") != "outcome")
    rows = memories.filter(is_told & (pc.field("trust") != TRUSTS[0])).select(KNOWN_COLUMNS).to_pylist()
    return [
        KnownMemory(row["memory_id"], row["text"])
        for row in rows
        if row["created_at"] <= ended_at and _is_written(row, session_id, read_at, as_of)
    ]


def moments(
    memories: pa.Table, read_at: Mapping[str, datetime], answered_at: Iterable[datetime] = ()
) -> list[datetime]:
    """
    Return when what may be named has changed, the latest first: each is a value of `as_of`.

    `answered_at` are the moments of answers about the whole project, which end memories.
    """
    explicit = memories.filter(pc.field("source_type") == "explicit")["recorded_at"].to_pylist()
    return sorted({*read_at.values(), *answered_at, *(at for at in explicit if at)}, reverse=True)


def _is_written(row: Row, session_id: str, read_at: Mapping[str, datetime], as_of: datetime | None) -> bool:
    if row["source_type"] == "explicit":
        return as_of is None or (row["recorded_at"] or EPOCH) < as_of
    others = {
        place["session_id"]
        for place in row["evidence"]
        if place["layer"].startswith(LAYER_PREFIX) and place["session_id"] != session_id
    }
    return any(as_of is None or read_at.get(name, EPOCH) < as_of for name in others)
