"""The request that reads one whole session, in pieces if it is too long, for what is worth keeping of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cortex.hooks.prose.own_prose import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.events import (
    is_led_by_person,
    is_sent_by_program,
    threads_by_session,
    with_prompts_of_person,
)
from cortex.transforms.extract.language.candidate import text_of
from cortex.transforms.extract.structural import COMMIT, commit_message
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.words.ages import counted
from cortex.transforms.words.sentences import long_words, shortened
from cortex.transforms.writer.answer import (
    SessionTurns,
    WrittenFact,
    WrittenOutcome,
    checked_facts,
    parsed_answer,
)
from cortex.transforms.writer.rendering import (
    PERSONS,
    SessionLine,
    estimated_tokens,
    fitted,
    session_lines,
    shortened_in_middle,
    tokens_of_line,
    tokens_of_lines,
)
from cortex.transforms.writer.request import ModelRequest, Prompt

# -- A session too long for one reading: read in pieces for candidates, then shortened, beside them.

# What a reply about a piece is for: its facts are candidates and never shown.
PIECE_PURPOSE = "piece"
# A piece ends before a person's words where they stand in its last part.
EARLIEST_END = 0.7
# A cited turn that the shortened session has left out is named with so much of it.
CITED_CHARS = 300
CANDIDATE_CHARS = 700
_PIECE_NOTE = (
    "This is part {number} of one session that is too long to be read at once; other parts may stand before"
    " it and after it. Note of this part what may still matter when the whole session is over, with the turns"
    " as they are numbered here. What nobody has answered by the end of this part is open.\n\n"
)
_PIECE_END = (
    "Now write the JSON object for this part of the session: its outcome, and the facts, if any; at most 12."
)
_CANDIDATES_NOTE = (
    "The session is too long to be read at once, and is shortened below. It was read in {count} parts before:"
    " <candidates> holds what was noted of each part, in order, without knowledge of the parts after it, with"
    " the turns as they are numbered below. They are a record to read like the session. Write the facts by"
    " how things stand when the session ends: take over what still holds, quote and turns included; make one"
    " of those that say the same; leave out what a later part overturns.\n\n"
)


def pieces_of(lines: Sequence[SessionLine], tokens: int, most: int) -> list[list[SessionLine]]:
    """
    Return lines in at most `most` pieces of at most `tokens` estimated tokens, each broken between two turns.

    A session that goes on leaves the pieces before its last as they were. What does not fit into so many
    loses what `fitted` gives up first.
    """
    kept = list(lines)
    pieces = _split(kept, tokens)
    room = tokens * most
    while len(pieces) > most:
        room = room * 9 // 10
        kept = fitted(kept, room)
        pieces = _split(kept, tokens)
    return [fitted(piece, tokens) for piece in pieces]


def piece_request(
    piece: Sequence[SessionLine], number: int, model: str, prompt: Prompt, output_tokens: int
) -> ModelRequest:
    """Return the request that reads one piece; it depends on nothing but the piece and where it stands."""
    body = "\n".join(line.shown(at) for at, line in enumerate(piece, start=1))
    note = _PIECE_NOTE.format(number=number)
    content = redact(f"{note}<session>\n{body}\n</session>\n\n{_PIECE_END}")[0]
    return ModelRequest(
        PIECE_PURPOSE, model, prompt.name, prompt.system, content, prompt.schema, output_tokens
    )


class Candidates:
    """What was noted of the pieces: facts that pass the checks, and what became of each piece."""

    def __init__(
        self,
        pieces: Sequence[Sequence[SessionLine]],
        answers: Sequence[str],
        most: Sequence[int],
        policy: Policy,
    ) -> None:
        """
        Take the pieces, the texts of the replies to them, and how many facts of each count at most.

        What is no answer has no candidates.
        """
        self._parts: list[list[tuple[str, tuple[str, ...]]]] = []
        for piece, text, facts_max in zip(pieces, answers, most, strict=True):
            answer = parsed_answer(text)
            if answer is None:
                self._parts.append([])
                continue
            checked = checked_facts(
                answer.facts, SessionTurns([line.turn for line in piece]), facts_max, policy
            )
            facts = [
                (_words_of(each.fact), tuple(str(turn["turn_id"]) for turn in each.turns))
                for each in checked
                if not each.refused
            ]
            outcome = _outcome_words(answer.outcome)
            self._parts.append([*([(outcome, ())] if outcome else []), *facts])

    def with_cited(self, shown: Sequence[SessionLine], lines: Sequence[SessionLine]) -> list[SessionLine]:
        """Return the shortened session with the turns that candidates rest on, in the order of `lines`."""
        by_turn = {line.turn["turn_id"]: line for line in shown}
        cited = {name for part in self._parts for _, turns in part for name in turns}
        for line in lines:
            name = line.turn["turn_id"]
            if name in cited and name not in by_turn:
                words = shortened_in_middle(line.words, CITED_CHARS)
                by_turn[name] = SessionLine(line.turn, line.speaker, words)
        return [by_turn[line.turn["turn_id"]] for line in lines if line.turn["turn_id"] in by_turn]

    def listed(self, shown: Sequence[SessionLine]) -> str:
        """Return the candidates as the last reading sees them, by the numbers of the turns shown to it."""
        numbers = {line.turn["turn_id"]: f"t{at}" for at, line in enumerate(shown, start=1)}
        rows = []
        for part, facts in enumerate(self._parts, start=1):
            for words, turns in facts:
                names = ", ".join(numbers[name] for name in turns if name in numbers)
                rows.append(f"part {part}{f', turns {names}' if names else ''}: {words}")
        body = "\n".join(rows) or "nothing"
        note = _CANDIDATES_NOTE.format(count=len(self._parts))
        return f"{note}<candidates>\n{body}\n</candidates>\n\n"

    @property
    def tokens(self) -> int:
        """About how many tokens the candidates and the turns that they cite take."""
        words = sum(len(text.encode("utf-8", "replace")) for part in self._parts for text, _ in part)
        cited = len({name for part in self._parts for _, turns in part for name in turns})
        return (words + cited * CITED_CHARS + len(_CANDIDATES_NOTE)) // 3 + 30 * sum(map(len, self._parts))


def answers_to(requests: Sequence[ModelRequest], answers: Mapping[str, str]) -> list[str] | None:
    """Return the texts of the replies to all of `requests`, None while one is missing."""
    texts = [answers.get(request.request_id) for request in requests]
    return [text for text in texts if text is not None] if None not in texts else None


def _split(lines: Sequence[SessionLine], tokens: int) -> list[list[SessionLine]]:
    pieces: list[list[SessionLine]] = []
    piece: list[SessionLine] = []
    used = 0
    for line in lines:
        weight = tokens_of_line(line)
        if piece and used + weight > tokens:
            end = _end_of(piece, tokens)
            pieces.append(piece[:end])
            piece = piece[end:]
            used = tokens_of_lines(piece)
        piece.append(line)
        used += weight
    return [*pieces, piece] if piece else pieces


def _end_of(piece: Sequence[SessionLine], tokens: int) -> int:
    """Return where a full piece ends: before the last words of a person, unless they stand too early."""
    used = tokens_of_lines(piece)
    for at in range(len(piece) - 1, 0, -1):
        used -= tokens_of_line(piece[at])
        if used < EARLIEST_END * tokens:
            break
        if piece[at].turn["kind"] in PERSONS:
            return at
    return len(piece)


def _words_of(fact: WrittenFact) -> str:
    parts = [f"({fact.fact_type}, {fact.state}) {fact.statement}"]
    parts += [f"Why: {fact.why}"] * bool(fact.why)
    parts += [f"Instead of: {fact.instead_of}"] * bool(fact.instead_of)
    return _pieces_in_frame(
        f"{shortened(' '.join(parts), CANDIDATE_CHARS)} Quote: {fact.quote[:CITED_CHARS]}"
    )


def _outcome_words(outcome: WrittenOutcome) -> str:
    parts = (("goal", outcome.goal), ("outcome", outcome.outcome), ("open", outcome.still_open))
    return _pieces_in_frame(
        shortened("; ".join(f"{name}: {words}" for name, words in parts if words), CANDIDATE_CHARS)
    )


def _pieces_in_frame(text: str) -> str:
    """Return words that neither end nor begin a frame of the request."""
    return text.replace("<", "‹")


# -- The request that reads one whole session, from beginning to end, for what is worth keeping of it.

# A known memory is named by the beginning of its id: enough to tell thirty of them apart.
ID_CHARS = 10
KNOWN_CHARS = 420
# Fewer words settle and ask nothing: "hi", "thanks".
MIN_LINES = 2
# What a piece's request says around the piece.
PIECE_TOKENS = 200
_CLOSING = (
    "Now write the JSON object for the session above: its outcome, and the facts worth keeping, if any; at"
    " most {most} facts."
)
# A longer session may have a fact more for each of so many lines.
LINES_OF_A_FACT, LINES_OF_FEW_FACTS = 25, 150
# What a request names of a session's commits and files: the last, and those changed most often.
COMMITS_NAMED, COMMIT_CHARS, FILES_NAMED = 20, 100, 30


@dataclass(frozen=True)
class KnownMemory:
    """A memory that a person or a language model wrote; never one of the rules, which change by release."""

    memory_id: str
    text: str


@dataclass(frozen=True)
class SessionRequest:
    """A request about a session or a piece of it: its turns as numbered from t1 on, the memories named."""

    project_id: str
    session_id: str
    request: ModelRequest
    turn_ids: tuple[str, ...]
    known: tuple[str, ...] = ()

    @property
    def is_piece(self) -> bool:
        """Whether it reads a piece alone: its reply makes no events."""
        return self.request.purpose == PIECE_PURPOSE


def session_requests(
    turns: pa.Table,
    known: Sequence[KnownMemory],
    policy: Policy,
    model: str,
    prompt: Prompt,
    answers: Mapping[str, str] | None = None,
) -> list[SessionRequest]:
    """
    Return the requests of each whole session in `turns` (TURNS) that a person led, by project and session.

    A request depends on nothing but the session's turns, the memories named and the prompt. Of `known` it
    names the nearest by shared words. A session that fits into the price tier has one. A longer one has a
    request a piece; once `answers` (text by request id) holds the replies to all of them, it has the one that
    reads the shortened session beside what was noted of its pieces.
    """
    requests = []
    reading = _Reading(known, policy, model, prompt, answers or {})
    for threads in threads_by_session(turns):
        main = [thread for thread in threads if thread[0]["agent_id"] is None]
        is_led = any(is_led_by_person(thread) for thread in main)
        lines = session_lines([with_prompts_of_person(thread) for thread in main]) if is_led else []
        if len(lines) >= MIN_LINES:
            requests += reading.requests(lines)
    return requests


@dataclass(frozen=True)
class _Reading:
    """What requests about sessions have in common."""

    known: Sequence[KnownMemory]
    policy: Policy
    model: str
    prompt: Prompt
    answers: Mapping[str, str]

    def requests(self, lines: Sequence[SessionLine]) -> list[SessionRequest]:
        """Return what is to be asked about one session now."""
        named = _nearest(self.known, lines, int(self.policy.threshold("writer_known_memories_max")))
        room = int(self.policy.threshold("writer_session_tokens_max"))
        room -= estimated_tokens(self.prompt.system + self.prompt.schema)
        about = about_session(lines)
        around = _listed(named) + about + _CLOSING
        if tokens_of_lines(lines) <= room - estimated_tokens(around):
            return [self._whole(lines, named, about, "")]
        pieces = pieces_of(lines, room - PIECE_TOKENS, int(self.policy.threshold("writer_pieces_max")))
        asked = [self._piece(piece, number) for number, piece in enumerate(pieces, start=1)]
        texts = answers_to([each.request for each in asked], self.answers)
        if texts is None:
            return asked
        most = [facts_most(len(piece), self.policy) for piece in pieces]
        candidates = Candidates(pieces, texts, most, self.policy)
        room -= estimated_tokens(around) + candidates.tokens
        shown = candidates.with_cited(fitted(lines, room), lines)
        return [self._whole(shown, named, about, candidates.listed(shown))]

    def _whole(
        self, shown: Sequence[SessionLine], named: Sequence[KnownMemory], about: str, candidates: str
    ) -> SessionRequest:
        """Return the request whose reply is the session's."""
        body = "\n".join(line.shown(number) for number, line in enumerate(shown, start=1))
        # What was redacted turn by turn may make a secret side by side.
        closing = _CLOSING.format(most=facts_most(len(shown), self.policy))
        before = f"{about}{_listed(named)}{candidates}"
        content = redact(f"{before}<session>\n{body}\n</session>\n\n{closing}")[0]
        prompt, tokens = self.prompt, self._output_tokens
        request = ModelRequest(
            prompt.purpose, self.model, prompt.name, prompt.system, content, prompt.schema, tokens
        )
        return _about(shown, request, tuple(memory.memory_id for memory in named))

    def _piece(self, piece: Sequence[SessionLine], number: int) -> SessionRequest:
        return _about(piece, piece_request(piece, number, self.model, self.prompt, self._output_tokens), ())

    @property
    def _output_tokens(self) -> int:
        return int(self.policy.threshold("writer_output_tokens_max"))


def facts_most(line_count: int, policy: Policy) -> int:
    """Return how many facts an answer about a session of so many lines may have."""
    fewest, most = (int(policy.threshold(name)) for name in ("writer_facts_max", "writer_facts_long_max"))
    return min(most, fewest + max(0, line_count - LINES_OF_FEW_FACTS) // LINES_OF_A_FACT)


def about_session(lines: Sequence[SessionLine]) -> str:
    """Return what a request says of a whole session before its turns: when, who led it, files, commits."""
    turns = [line.turn for line in lines]
    times = [turn["said_at"] for turn in turns if turn["said_at"]]
    rows = [f"from {min(times):%Y-%m-%d %H:%M} to {max(times):%Y-%m-%d %H:%M}"] if times else []
    sent = sum(is_sent_by_program(turn) for turn in turns)
    typed = sum(turn["kind"] in PERSONS for turn in turns) - sent
    rows.append(f"led by a person: {counted(typed, 'line')} typed" if typed else "led through a program")
    rows[-1] += f", {sent} sent through a program" if sent and typed else ""
    reports = sum(turn["kind"] == "program" for turn in turns)
    rows += [f"{counted(reports, 'line')} of programs in between"] if reports else []
    calls = [turn for turn in turns if turn["kind"] == "tool_call"]
    edited = Counter(text_of(turn) for turn in calls if turn["tool_name"] in EDIT_TOOLS and text_of(turn))
    named = [f"{_in_frame(name)} ({count})" for name, count in edited.most_common(FILES_NAMED)]
    rows += [f"files changed, with the number of edits: {', '.join(named)}"] if named else []
    commits = [_in_frame(subject) for turn in calls if (subject := _committed(turn))]
    rows += [f"commits made: {'; '.join(commits[-COMMITS_NAMED:])}"] if commits else []
    return "<about>\n" + "\n".join(rows) + "\n</about>\n\n"


def _committed(turn: Mapping[str, Any]) -> str:
    """Return the first line of the message of a call that commits."""
    if turn["tool_name"] not in SHELL_TOOLS or not COMMIT.search(text_of(turn)):
        return ""
    return commit_message(text_of(turn)).partition("\n")[0][:COMMIT_CHARS]


def _in_frame(text: str) -> str:
    return " ".join(text.split()).replace("<", "‹")


def _about(lines: Sequence[SessionLine], request: ModelRequest, known: tuple[str, ...]) -> SessionRequest:
    first = lines[0].turn
    turn_ids = tuple(str(line.turn["turn_id"]) for line in lines)
    return SessionRequest(str(first["project_id"]), str(first["session_id"]), request, turn_ids, known)


def _nearest(known: Sequence[KnownMemory], lines: Sequence[SessionLine], most: int) -> list[KnownMemory]:
    """Return the memories that share the most of their words with the session, by id."""
    if not known:
        return []
    words = {word for line in lines for word in long_words(line.words)}
    ranked = sorted(known, key=lambda memory: (-_share_in(long_words(memory.text), words), memory.memory_id))
    return sorted(ranked[:most], key=lambda memory: memory.memory_id)


def _listed(known: Sequence[KnownMemory]) -> str:
    if not known:
        return "<known>\nnothing yet\n</known>\n\n"
    rows = [
        f"[{memory.memory_id[:ID_CHARS]}] {shortened(' '.join(memory.text.split()), KNOWN_CHARS)}"
        for memory in known
    ]
    return "<known>\n" + "\n".join(rows) + "\n</known>\n\n"


def _share_in(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0
