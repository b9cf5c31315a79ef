"""A person's words, made to stand alone: with what they were said to and the answer they got."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from cortex.hooks.own_prose import own_prose
from cortex.hooks.self_report import SIGN
from cortex.transforms.extract.candidate import Turn, line_of, text_of
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import PASTED_LINE, Phrasebook
from cortex.transforms.extract.sentences import LONGEST_CHARS, SHORTEST_CHARS, Passage, passages, plain
from cortex.transforms.extract.tags import without_tags
from cortex.transforms.extract.thread import PERSON, Place
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import PROSE, is_question, sentences, shortened

# Passage, what a memory of it says, and the lines that rests on.
Statement = tuple[Passage, str, tuple[int, ...]]

ANSWER = " → "
BLANK_LINE = re.compile(r"\n\s*\n")
# A prompt longer than this holds a pasted log, file or document; what the person says stands at its start.
TYPED_CHARS = 1500
# In a prompt of this length a passage that says neither "I" nor "we" and speaks to nobody was written
# elsewhere: a page of documentation, a review, another assistant's answer.
PASTED_FROM_CHARS = 400
PASSAGE_WITHOUT_VOICE_CHARS = 80
PASTED_PASSAGES = 3
LASTING = "lasting"  # block of a passage that says what holds for good
SHORTEST_LASTING_CHARS = 14  # "Always use uv."
# A short prompt ("yes, option 2") says nothing without the question it answers.
TERSE_CHARS = 60
QUESTION_CHARS = 140
CALL_CHARS = 100
REPLY_CHARS = 300
ROOM_FOR_REPLY_CHARS = 80
# An answer starts within the next turns or not at all: 40 turns are about 15 tool calls.
TURNS_TO_ANSWER = 40


def statements_of(turns: Sequence[Turn], index: int, place: Place, lexicon: Lexicon) -> Iterator[Statement]:
    """
    Yield the passages of a person's turn; the first with its occasion, the last with its answer.

    What is said for good stands by itself: the answer was given to the rest.
    """
    typed = without_pasted_lines(text_of(turns[index]))
    parts = _passages(typed, lexicon.phrases)[: PASTED_PASSAGES if len(typed) > TYPED_CHARS else None]
    lasting = [part for passage in parts for part in _lasting(passage, typed, lexicon)]
    for part in lasting:
        yield part, part.text, (line_of(turns[index]),)
    parts = _without({part.text for part in lasting}, parts)
    for number, passage in enumerate(parts):
        text, lines = passage.text, [line_of(turns[index])]
        occasion, occasion_line = _occasion(turns, index, place) if number == 0 else ("", 0)
        if occasion:
            text = f"{text} ({occasion})"
            lines.append(occasion_line)
        if number == len(parts) - 1 and len(text) < LONGEST_CHARS - ROOM_FOR_REPLY_CHARS:
            reply, reply_line = answered(turns, index, lexicon)
            if reply:
                text = f"{text}{ANSWER}{reply}"
                lines.append(reply_line)
        if latin_length(text) >= SHORTEST_CHARS:
            yield passage, shortened(text, LONGEST_CHARS), tuple(lines)


def _lasting(passage: Passage, typed: str, lexicon: Lexicon) -> list[Passage]:
    """Return what a passage says for good, each sentence by itself; of a pasted one nothing."""
    if is_anothers(passage.text, typed, lexicon.phrases):
        return []
    standing = [
        shortened(part, LONGEST_CHARS)
        for part in lexicon.kinds.standing(passage.text)
        if latin_length(part) >= SHORTEST_LASTING_CHARS
    ]
    return [replace(passage, text=part, block=LASTING) for part in standing]


def _without(removed: set[str], given: list[Passage]) -> list[Passage]:
    """Return passages without the sentences in `removed`; what is then too short says nothing."""
    if not removed:
        return given
    left = [
        " ".join(part for part in sentences(passage.text, PROSE) if part not in removed) for passage in given
    ]
    rest = [replace(passage, text=text) for passage, text in zip(given, left, strict=True)]
    return [passage for passage in rest if latin_length(passage.text) >= SHORTEST_CHARS]


def own_passages(turn: Turn, phrases: Phrasebook) -> list[Passage]:
    """Return the passages of the assistant's own prose: nothing it quotes, no tag and no talk of tags."""
    prose = without_tags(own_prose(text_of(turn)))
    return [passage for passage in passages(prose, phrases) if SIGN not in passage.text.lower()]


def _passages(typed: str, phrases: Phrasebook) -> list[Passage]:
    """Return the passages of a prompt; what is pasted is never joined with the person's own words."""
    if len(typed) <= PASTED_FROM_CHARS or "```" in typed:
        return passages(typed, phrases)
    runs = groupby(BLANK_LINE.split(typed), lambda part: is_anothers(part, typed, phrases))
    in_order = [passage for _, parts in runs for passage in passages("\n\n".join(parts), phrases)]
    return [replace(passage, position=position) for position, passage in enumerate(in_order)]


def without_pasted_lines(text: str) -> str:
    """
    Return what a person typed, without lines of a shell, a log or a document.

    >>> without_pasted_lines("it fails:\\n$ make test\\n12:01:33 Error")
    'it fails:'
    """
    return "\n".join(line for line in text.split("\n") if not PASTED_LINE.match(line))


def is_anothers(passage: str, prompt: str, phrases: Phrasebook) -> bool:
    """
    Return whether a passage of a long prompt is pasted: nobody speaks in it and nobody is spoken to.

    >>> note = "Medium: the loader exits with 0 although the argument is missing, so scripts do not notice."
    >>> opinion = f"{note} I think we should fail."
    >>> is_anothers(note, note * 5, phrases), is_anothers(opinion, note * 5, phrases)
    (True, False)
    """
    is_long = len(prompt) > PASTED_FROM_CHARS and len(passage) > PASSAGE_WITHOUT_VOICE_CHARS
    return is_long and phrases.personal.search(passage) is None


def _occasion(turns: Sequence[Turn], index: int, place: Place) -> tuple[str, int]:
    """Return what the words were said to, and its line: a refused call, or the question they answer."""
    turn = turns[index]
    if turn["kind"] == "rejection":
        for earlier in reversed(turns[max(0, index - TURNS_TO_ANSWER) : index]):
            if earlier["kind"] == "tool_call" and earlier["tool_use_id"] == turn["tool_use_id"]:
                argument = shortened(" ".join(text_of(earlier).split()), CALL_CHARS)
                return f"said when refusing {earlier['tool_name']}: {argument}", line_of(earlier)
    if place.answers is None or latin_length(text_of(turn)) > TERSE_CHARS:
        return "", 0
    question = last_question(own_prose(text_of(place.answers)))
    return (f"asked: {question}", line_of(place.answers)) if question else ("", 0)


def last_question(text: str) -> str:
    """
    Return the last question of an assistant's text, or nothing.

    >>> asked("There are two ways. Shall I use Vite?")
    'Shall I use Vite?'
    """
    for sentence in reversed(sentences(plain(text[-600:]), PROSE)[-3:]):
        if is_question(sentence):
            return shortened(sentence, QUESTION_CHARS)
    return ""


def answered(turns: Sequence[Turn], index: int, lexicon: Lexicon) -> tuple[str, int]:
    """Return the first substantial sentences of the answer to a person's words, and their line."""
    for turn in turns[index + 1 : index + 1 + TURNS_TO_ANSWER]:
        if turn["kind"] in PERSON:
            break
        if turn["kind"] != "text":
            continue
        for passage in own_passages(turn, lexicon.phrases)[:3]:
            text = lexicon.phrases.without_filler(passage.text)
            if latin_length(text) >= SHORTEST_CHARS and not lexicon.narrates(text):
                return shortened(text, REPLY_CHARS), line_of(turn)
    return "", 0
