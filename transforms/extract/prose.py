"""Layer 2 candidates: every passage of a session that might be worth keeping, with its context and signals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cortex.transforms.extract.markers import Markers, Reading
from cortex.transforms.extract.sentences import LONGEST_CHARS, SHORTEST_CHARS, Passage, passages, sentences, plain
from cortex.transforms.extract.signals import COMPILED, Corpus, signals
from cortex.transforms.extract.thread import Place, Turn, places, text_of

# A pasted log, file or document is not what the person says; two short paragraphs are.
TYPED_CHARS = 1500
PASTED_PASSAGES = 3
# A short prompt ("yes, option 2") says nothing without the question it answers.
TERSE_CHARS = 60
QUESTION_CHARS = 140
REPLY_CHARS = 220

FILLER = re.compile(
    r"^(?:(?:perfect|excellent|great|good|awesome|nice|wonderful|done|aha|ah|oh|interesting|hmm|ok(?:ay)?|right|exactly|absolutely|yes|got it|i see"
    r"|(?:good|great|nice|fair) (?:point|catch|question|call|idea|instinct|news|progress|choice)|you'?re (?:absolutely )?right|i see (?:the|it)(?: \w+)?(?: now)?|now i (?:see|understand)(?: it| the \w+)?(?: now)?)\s*(?:[!.,:]|[-–—]+)\s*)+",
    re.IGNORECASE,
)
LEAD = re.compile(r"^(?:now|so|actually|and|also|but|then)\s*,\s+", re.IGNORECASE)
GENERIC_HEADING = re.compile(
    r"^(?:summary|changes?(?: made)?|what (?:changed|was done|i did)|overview|details?|result|notes?|done|key (?:changes|points|aspects))$", re.IGNORECASE
)


@dataclass(frozen=True)
class Candidate:
    """A passage with everything the score and the event need."""

    turn: Turn
    lines: tuple[int, ...]
    text: str
    reading: Reading
    signals: dict[str, float]
    place: Place
    passage: Passage


def candidates(turns: Sequence[Turn], markers: Markers) -> list[Candidate]:
    """
    Return the candidates of one thread, in order.

    `turns` are the turns of one transcript in its order, without rewound ones and without those of subagents.
    """
    where = places(turns)
    corpus = Corpus.of((text_of(turn), place.speaker == "user") for turn, place in zip(turns, where, strict=True) if place)
    found: list[Candidate] = []
    for index, place in enumerate(where):
        if place is None:
            continue
        for passage, text, lines in _said(turns, index, place):
            reading = markers.read(text, place.speaker)
            found.append(
                Candidate(turns[index], lines, text, reading, signals(passage, place, corpus, reading.strengths), place, passage)
            )
    return found


def _said(turns: Sequence[Turn], index: int, place: Place) -> Iterator[tuple[Passage, str, tuple[int, ...]]]:
    turn = turns[index]
    line = int(str(turn["line"]))
    if turn["kind"] in ("prompt", "command", "rejection"):
        yield from _spoken(turns, index, place, line)
        return
    for passage in passages(text_of(turn)):
        text = cleaned(passage)
        if len(text) >= SHORTEST_CHARS:
            yield passage, text, (line,)


def cleaned(passage: Passage) -> str:
    """Return a passage without leading filler, under its heading where that says something."""
    text = FILLER.sub("", passage.text)
    text = LEAD.sub("", text)
    text = text[:1].upper() + text[1:]
    if passage.block != "paragraph" and passage.heading and not GENERIC_HEADING.match(passage.heading):
        text = f"{passage.heading}: {text}"
    return shortened(text, LONGEST_CHARS)


def shortened(text: str, limit: int) -> str:
    """Return `text` cut at a word to at most `limit` characters."""
    if len(text) <= limit:
        return text
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _spoken(turns: Sequence[Turn], index: int, place: Place, line: int) -> Iterator[tuple[Passage, str, tuple[int, ...]]]:
    """Yield a person's passages; the first with the question it answers or with the answer it got."""
    typed = text_of(turns[index])
    said = passages(typed)
    if len(typed) > TYPED_CHARS:
        said = said[:PASTED_PASSAGES]
    for number, passage in enumerate(said):
        text, lines = passage.text, (line,)
        if number == 0:
            question = asked(place.answers) if len(typed) <= TERSE_CHARS else ""
            if question and place.answers:
                text, lines = f"{text} (asked: {question})", (line, int(str(place.answers["line"])))
        if number == len(said) - 1 and len(text) < LONGEST_CHARS - 80:
            reply, reply_line = answered(turns, index)
            if reply:
                text, lines = f"{text} → {reply}", (*lines, reply_line)
        if len(text) >= SHORTEST_CHARS or len(said) == 1:
            yield passage, shortened(text, LONGEST_CHARS), lines




def asked(turn: Turn | None) -> str:
    """Return the last question of an assistant's text, or nothing."""
    if turn is None:
        return ""
    tail = sentences(plain(text_of(turn)[-600:]))
    for sentence in reversed(tail[-3:]):
        if sentence.endswith("?"):
            return shortened(sentence, QUESTION_CHARS)
    return ""


def answered(turns: Sequence[Turn], index: int) -> tuple[str, int]:
    """Return the first substantial sentences of the answer to a prompt, and their line."""
    for turn in turns[index + 1 : index + 40]:
        if turn["kind"] in ("prompt", "command", "rejection", "choice", "plan"):
            break
        if turn["kind"] != "text":
            continue
        for passage in passages(text_of(turn))[:3]:
            text = LEAD.sub("", FILLER.sub("", passage.text))
            if len(text) >= SHORTEST_CHARS and not COMPILED["narrates"].search(text):
                return shortened(text, REPLY_CHARS), int(str(turn["line"]))
    return "", 0
