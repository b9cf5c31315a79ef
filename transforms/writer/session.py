"""The request that reads one whole session, from beginning to end, for what is worth keeping of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cortex.hooks.prose.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.events import threads_by_session
from cortex.transforms.extract.git import COMMIT, commit_message
from cortex.transforms.extract.ground.candidate import text_of
from cortex.transforms.extract.leaders import (
    is_led_by_person,
    is_sent_by_program,
    with_prompts_of_person,
)
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.words.ages import counted
from cortex.transforms.words.scripts import long_words
from cortex.transforms.writer.fitting import estimated_tokens, fitted, tokens_of_lines
from cortex.transforms.writer.pieces import PIECE_PURPOSE, Candidates, answers_to, piece_request, pieces_of
from cortex.transforms.writer.prompt import Prompt
from cortex.transforms.writer.rendering import PERSONS, SessionLine, session_lines
from cortex.transforms.writer.request import ModelRequest

# A known memory is named by the beginning of its id: enough to tell thirty of them apart.
ID_CHARS = 10
KNOWN_CHARS = 300
# Fewer words settle and ask nothing: "hi", "thanks".
FEWEST_LINES = 2
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
        if len(lines) >= FEWEST_LINES:
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
        candidates = Candidates(pieces, texts, [facts_most(len(piece), self.policy) for piece in pieces])
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
        f"[{memory.memory_id[:ID_CHARS]}] {' '.join(memory.text.split())[:KNOWN_CHARS]}" for memory in known
    ]
    return "<known>\n" + "\n".join(rows) + "\n</known>\n\n"


def _share_in(words: set[str], others: set[str]) -> float:
    return len(words & others) / len(words) if words else 0.0
