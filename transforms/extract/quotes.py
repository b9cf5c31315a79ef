"""Whose words count: others' stay others', and what Cortex said itself is never learnt."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.echo import (
    MIN_ECHO_CHARS,
    PROVENANCE,
    RECALL_SOURCE,
    fingerprints_of,
    marked_parts,
    marks_of,
)
from cortex.hooks.prose.own_prose import trust_of_call
from cortex.hooks.prose.repeats import EarlierText, least_words, statements
from cortex.transforms.extract.structural import input_of
from cortex.transforms.schemas import EPOCH, EVENTS, TRUSTS, TURNS, Row
from cortex.transforms.words.sentences import latin_length

# -- What Cortex said itself: known again by fingerprint, so that an echo of it is never learnt (spec 4.4).

# From when to when a line was told; None: it still is.
Span = tuple[datetime, datetime | None]

# Kinds of turn that prose is learnt from.
ECHOING_KINDS = frozenset({"prompt", "command", "rejection", "choice", "plan", "text"})
# A step ticked off is news, though the plan was told.
STEP = re.compile(r"^\s*[-*]\s+\[[ xX]\]")


@dataclass(frozen=True)
class ShownLines:
    """The fingerprints that a project was told, each with its spans; what is said within `grace` echoes."""

    spans: Mapping[str, Iterable[Span]] = field(default_factory=dict)
    grace: timedelta = timedelta(0)

    def covers(self, fingerprint: str, at: datetime | None) -> bool:
        """Return whether a line said at `at` echoes what was told; one that nobody dated does."""
        return any(
            at is None or (first <= at and (until is None or at <= until + self.grace))
            for first, until in self.spans.get(fingerprint, ())
        )


def without_echoes(turns: pa.Table, shown: ShownLines) -> pa.Table:
    """
    Return TURNS without the sentences that repeat what Cortex said; rows and their order stay.

    Echoes are sentences in `shown` at their time, lines in the shape of a brief or of a recall's answer, and
    what repeats such lines later in the same session. A turn of nothing else is left with no text.
    """
    # What tools returned, most of a long session, is neither looked at nor copied.
    is_read: Any = pc.is_in(turns["kind"], pa.array(sorted(ECHOING_KINDS)))
    spoken = turns.select(["session_id", "file", "line", "block", "said_at", "text"]).filter(is_read)
    rows = spoken.to_pylist()
    if not shown.spans and not any(_has_shape(row["text"]) for row in rows):
        return turns
    pasted: dict[str, set[str]] = {}
    for row in sorted(rows, key=_place):
        if row["text"]:
            seen = pasted.setdefault(row["session_id"], set())
            seen |= _shaped(row["text"])
            row["text"] = _without(row["text"], shown, row["said_at"], seen)
    kept = pa.chunked_array([[row["text"] for row in rows]], pa.string())
    if kept.equals(spoken["text"]):
        return turns
    mask, replacements = is_read.combine_chunks(), kept.combine_chunks()
    texts = pc.replace_with_mask(turns["text"].combine_chunks(), mask, replacements)
    return turns.set_column(turns.schema.get_field_index("text"), TURNS.arrow.field("text"), texts)


def _place(row: dict[str, Any]) -> tuple[str, int, int]:
    return row["file"], row["line"], row["block"]


def _has_shape(text: str) -> bool:
    # Cheap signs first: millions of lines have neither.
    if ")" in text and any(PROVENANCE.search(line) for line in text.split("\n") if ")" in line[-240:]):
        return True
    return "]" in text and any(RECALL_SOURCE.match(line) for line in text.split("\n"))


def _shaped(text: str) -> frozenset[str]:
    """Return the fingerprints of the lines that look like a brief's or a recall's."""
    lines = text.split("\n")
    shaped = [line for line in lines if PROVENANCE.search(line)]
    shaped += [line for line, source in pairwise(lines) if RECALL_SOURCE.match(source)]
    return fingerprints_of("\n".join(shaped))


def _without(text: str, shown: ShownLines, at: datetime | None, pasted: set[str]) -> str:
    def is_echo(part: str) -> bool:
        return any(mark in pasted or shown.covers(mark, at) for mark in marks_of(part))

    kept = []
    for line in text.split("\n"):
        if PROVENANCE.search(line) or RECALL_SOURCE.match(line):
            continue
        parts = [] if STEP.match(line) else marked_parts(line)
        left = [part for part in parts if not is_echo(part)]
        if len(left) == len(parts):
            kept.append(line)
        elif latin_length(" ".join(left)) >= MIN_ECHO_CHARS:
            kept.append(" ".join(left))
    return "\n".join(kept)


# -- What an event may rest on: others' words stay others'.

# Free text of an event.
_TEXTS = ("text", "reason", "rejected")
_TURN_COLUMNS = [
    *("turn_id", "session_id", "agent_id", "file", "line", "block", "kind", "said_at", "text", "tool_name"),
    *("tool_use_id", "tool_input", "tool_status", "trust"),
]
# The assistant's own acts; files of the project may say what there is to do, as a person does. A checklist in
# an answer is prose.
ACTS = "layer1:"
CHECKLIST = "layer1:checklist"
_PROSE = "layer2:"
# Kinds of turn in which person or assistant speak for themselves.
OWN_KINDS = frozenset(("prompt", "command", "rejection", "choice", "plan", "shell", "text"))


def with_quotes_lowered(events: pa.Table, turns: pa.Table) -> pa.Table:
    """
    Return EVENTS with the trust of whoever said it first where the assistant repeats nearly the same.

    Takes the TURNS of whole sessions that the events rest on. Nearly the same is a sentence of which three
    words in four stand together in the result of a tool: `external` for web pages, MCP servers and whatever
    else comes from elsewhere, `tool` for files and commands here. What the assistant or the person said
    before the tool did stays theirs, and so does what a person typed. Steps of a plan and other acts may
    follow a file of the project.
    """
    by_session: dict[str, list[int]] = defaultdict(list)
    rows = events.select(["session_id", "turn_id", "trust", "layer", "memory_type", *_TEXTS]).to_pylist()
    for at, row in enumerate(rows):
        is_worded = row["memory_type"] is not None or row["layer"].startswith(_PROSE)
        if row["trust"] == "assistant" and is_worded:
            by_session[row["session_id"]].append(at)
    trusts = [row["trust"] for row in rows]
    turns_of = _turns_by_session(turns, by_session)
    for session_id, places in by_session.items():
        session = _Session(turns_of.get(session_id, []), [rows[at] for at in places])
        for at in places:
            trusts[at] = session.trust_of(rows[at])
    return _with_trusts(events, trusts)


def passage_trusts(passages: Sequence[Row], turns: pa.Table) -> list[str]:
    """
    Return the trust of each passage: `external` where the assistant repeats what came from elsewhere.

    Takes rows of PASSAGES and the TURNS of their whole files. Words of files and commands of this machine
    stay the assistant's: most of what it reports is of them.
    """
    trusts = [str(row["trust"]) for row in passages]
    places: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(passages):
        if row["kind"] == "text" and row["trust"] == "assistant":
            places[str(row["file"])].append(at)
    for file, own_turns in _turns_with_pages(turns, places).items():
        events = [
            {"turn_id": passages[at]["turn_id"], "trust": "assistant", "layer": _PROSE, "reason": None}
            | {"rejected": None, "text": passages[at]["text"]}
            for at in places[file]
        ]
        session = _Session(own_turns, events)
        for at, event in zip(places[file], events, strict=True):
            if session.trust_of(event) == "external":
                trusts[at] = "external"
    return trusts


def _turns_with_pages(turns: pa.Table, files: Mapping[str, object]) -> dict[str, list[Row]]:
    """Return the turns, in order, of those of `files` into which something came from elsewhere."""
    with_pages = {}
    for file, rows in _turns_by("file", turns, files).items():
        calls = {turn["tool_use_id"]: turn for turn in rows if turn["kind"] == "tool_call"}
        results = (turn for turn in rows if turn["kind"] == "tool_result")
        if any(trust_of_result(calls.get(turn["tool_use_id"]), turn) == "external" for turn in results):
            with_pages[file] = sorted(rows, key=lambda turn: (turn["line"], turn["block"]))
    return with_pages


class _Session:
    """What one session read, searched for the statements of its events."""

    def __init__(self, turns: Sequence[Row], events: Sequence[Row]) -> None:
        self._place_of = {turn["turn_id"]: place for place, turn in enumerate(turns)}
        self._turns = turns
        self._statements = {id(event): _statements(event) for event in events}
        self._trusts: dict[int, str] = {}
        self._marks: dict[tuple[str, ...], list[int]] = {}
        self._earlier_text = self._read()
        self._own: list[tuple[int, str, str]] | None = None

    def trust_of(self, event: Row) -> str:
        """Return the event's trust, or the lowest of the sources that said nearly the same before."""
        said_at = self._place_of.get(event["turn_id"], len(self._turns))
        lowest = [self._lowest(words, said_at, event["layer"]) for words in self._statements[id(event)]]
        return min([str(event["trust"]), *lowest], key=TRUSTS.index)

    def _read(self) -> EarlierText:
        earlier_text = EarlierText(words for of_event in self._statements.values() for words in of_event)
        calls = {turn["tool_use_id"]: turn for turn in self._turns if turn["kind"] == "tool_call"}
        for place, turn in enumerate(self._turns):
            if turn["kind"] != "tool_result":
                continue
            trust = trust_of_result(calls.get(turn["tool_use_id"]), turn)
            if trust:
                self._trusts[place] = trust
                earlier_text.add(str(turn["text"]), place)
        return earlier_text

    def _lowest(self, words: Sequence[str], said_at: int, layer: str) -> str:
        key = tuple(words)
        if key not in self._marks:
            self._marks[key] = self._earlier_text.marks_of(words)
        places = [place for place in self._marks[key] if place < said_at]
        if layer.startswith(ACTS) and layer != CHECKLIST:
            places = [place for place in places if self._trusts[place] == "external"]
        if places and self._was_own(words, places[0]):
            places = []
        return min((self._trusts[place] for place in places), key=TRUSTS.index, default=TRUSTS[-1])

    def _was_own(self, words: Sequence[str], before: int) -> bool:
        """Return whether the person or the assistant had said nearly the same before any tool did."""
        if self._own is None:
            self._own = [(place, text, text.casefold()) for place, text in own_words(self._turns)]
        distinct = sorted(set(words), key=len, reverse=True)
        misses = len(distinct) - least_words(len(distinct))
        earlier_text = EarlierText([words])
        for place, text, folded in self._own:
            # Few texts hold enough of the words at all, and only those are worth reading word by word.
            if place < before and _holds_most(folded, distinct, misses):
                earlier_text.add(text, place)
        return bool(earlier_text.marks_of(words))


def _holds_most(folded: str, words: Iterable[str], misses: int) -> bool:
    """Return whether a text holds all of `words` but `misses` at most."""
    for word in words:
        if word not in folded:
            misses -= 1
            if misses < 0:
                return False
    return True


def _turns_by_session(turns: pa.Table, wanted: Mapping[str, object]) -> dict[str, list[Row]]:
    """Return the turns of the sessions wanted, in the order in which they were said."""
    by_session = _turns_by("session_id", turns, wanted)
    for session in by_session.values():
        session.sort(key=lambda t: (t["said_at"] or EPOCH, t["file"], t["line"], t["block"]))
    return by_session


def _turns_by(name: str, turns: pa.Table, wanted: Iterable[str]) -> dict[str, list[Row]]:
    """
    Return the turns by a column, as far as its values are wanted.

    The text of a tool's result stays in Arrow until `str` asks for it: of 200 MB those are most.
    """
    is_wanted: Any = pc.is_in(turns[name], pa.array(sorted(wanted), pa.string()))
    places: Any = pc.indices_nonzero(is_wanted)
    texts, is_result = turns["text"], pc.equal(turns["kind"], pa.scalar("tool_result"))
    spoken = pc.if_else(is_result, pa.scalar(None, pa.string()), texts)
    chosen = turns.select(_TURN_COLUMNS).set_column(_TURN_COLUMNS.index("text"), "text", spoken)
    grouped: dict[str, list[Row]] = defaultdict(list)
    for at, turn in zip(places.to_pylist(), chosen.filter(is_wanted).to_pylist(), strict=True):
        if turn["kind"] == "tool_result":
            turn["text"] = texts[at]
        grouped[turn[name]].append(turn)
    return grouped


def _statements(event: Row) -> list[list[str]]:
    """Return the content words of each statement of an event."""
    content: list[list[str]] = []
    for name in _TEXTS:
        content += statements(event[name] or "")
    return content


def _with_trusts(events: pa.Table, trusts: list[str]) -> pa.Table:
    position = events.schema.get_field_index("trust")
    return events.set_column(position, EVENTS.arrow.field("trust"), pa.array(trusts, pa.string()))


def trust_of_result(call: Row | None, result: Row) -> str | None:
    """
    Return `external` or `tool` for the words of a tool's result, None if they are nobody else's.

    Takes TURNS rows; `call` is None if the transcript lacks it.
    """
    if result["trust"] == "external":
        return "external"
    if result["tool_status"] == "rejected":  # the words are the person's
        return None
    return trust_of_call(str(call["tool_name"] or ""), str(call["text"] or "")) if call else "tool"


def own_words(turns: Iterable[Row]) -> list[tuple[int, str]]:
    """Return (place, text) of what person and assistant said or wrote in the main thread, in order."""
    return [(place, text) for place, turn in enumerate(turns) if (text := _own(turn))]


def _own(turn: Row) -> str:
    if turn["agent_id"] is not None:
        return ""
    if turn["kind"] == "tool_call":
        return " ".join(_strings(input_of(turn)))
    return str(turn["text"] or "") if turn["kind"] in OWN_KINDS else ""


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]
