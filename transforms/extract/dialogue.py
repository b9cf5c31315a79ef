"""A person's words as statements, and what of a turn is its speaker's own."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from cortex.hooks.own_prose import own_prose
from cortex.hooks.self_report import SIGN
from cortex.hooks.sources import SHELL_TOOLS
from cortex.transforms.extract.candidate import Turn, line_of, text_of
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import PASTED_LINE, Phrasebook
from cortex.transforms.extract.sentences import LONGEST_CHARS, SHORTEST_CHARS, Passage
from cortex.transforms.extract.statements import passages
from cortex.transforms.extract.tags import without_tags
from cortex.transforms.extract.thread import Place
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import PROSE, sentences, shortened

# Passage, what a memory of it says, and the lines that rests on.
Statement = tuple[Passage, str, tuple[int, ...]]

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
# A shorter passage ("yes, option 2") says nothing by itself.
TERSE_CHARS = 60
CALL_CHARS = 100
# A refusal follows its call: 40 turns are about 15 tool calls.
TURNS_TO_CALL = 40


def statements_of(turns: Sequence[Turn], index: int, place: Place, lexicon: Lexicon) -> Iterator[Statement]:
    """Yield what a person's turn states, the lasting first; words in a refusal after what they refuse."""
    typed = without_pasted_lines(text_of(turns[index]))
    parts = _passages(typed, lexicon.phrases)[: PASTED_PASSAGES if len(typed) > TYPED_CHARS else None]
    lasting = [part for passage in parts for part in _lasting(passage, typed, lexicon)]
    line = line_of(turns[index])
    for part in lasting:
        yield part, part.text, (line,)
    refused, refused_line = _refused(turns, index)
    for number, passage in enumerate(_without({part.text for part in lasting}, parts)):
        if refused and number == 0:
            text = f"{refused}: {passage.text}"
            yield passage, shortened(text, LONGEST_CHARS), (line, refused_line)
        elif latin_length(passage.text) >= SHORTEST_CHARS:
            yield passage, shortened(passage.text, LONGEST_CHARS), (line,)


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
        return passages(typed, phrases, is_typed=True)
    runs = groupby(BLANK_LINE.split(typed), lambda part: is_anothers(part, typed, phrases))
    in_order = [
        passage for _, parts in runs for passage in passages("\n\n".join(parts), phrases, is_typed=True)
    ]
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


def _refused(turns: Sequence[Turn], index: int) -> tuple[str, int]:
    """Return the call that a person's words refuse, as the condition of what they say, and its line."""
    turn = turns[index]
    if turn["kind"] != "rejection":
        return "", 0
    for earlier in reversed(turns[max(0, index - TURNS_TO_CALL) : index]):
        if earlier["kind"] == "tool_call" and earlier["tool_use_id"] == turn["tool_use_id"]:
            argument = " ".join(text_of(earlier).split())
            if not argument or len(argument) > CALL_CHARS or "`" in argument:
                return "", 0
            verb = "Instead of `{}`" if earlier["tool_name"] in SHELL_TOOLS else "In `{}`"
            return verb.format(argument), line_of(earlier)
    return "", 0
