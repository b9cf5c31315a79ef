"""What the client itself sums up of a session that was left: its recaps, taken apart (spec 5)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cortex.transforms.extract.candidate import Turn
from cortex.transforms.extract.phrases import Phrasebook, part_of
from cortex.transforms.extract.statements import plain
from cortex.transforms.words.sentences import PROSE, sentences

_WIDE_STOP = re.compile(r"(?<=[。！？])(?=\S)")


@dataclass(frozen=True)
class Recap:
    """A recap taken apart: what the session is for, what was done, what comes next."""

    goal: str = ""
    done: tuple[str, ...] = ()
    next_step: str = ""


def summed_up(turns: Sequence[Turn]) -> list[Turn]:
    """Return the recaps that tell of this thread: those with an answer before them."""
    first = next((at for at, turn in enumerate(turns) if turn["kind"] in ("text", "tool_call")), len(turns))
    return [turn for turn in turns[first:] if turn["kind"] == "recap"]


def recap_parts(text: str, phrases: Phrasebook) -> Recap:
    """Return a recap taken apart."""
    goal, next_step = "", ""
    done: list[str] = []
    for sentence in prose_sentences(text):
        if step := phrases.next_named.match(sentence):
            next_step = "" if phrases.no_next.search(part_of(step)) else part_of(step)
        elif phrases.no_next.search(sentence) or sentence.endswith(("?", "？")):
            continue
        elif aim := phrases.goal_named.match(sentence):
            goal = goal or part_of(aim)
        else:
            done.append(as_deed(sentence, phrases))
    return Recap(_bare(goal), tuple(done), _bare(next_step))


def as_deed(sentence: str, phrases: Phrasebook) -> str:
    """Return what the assistant says it did with the deed first, without filler."""
    text = phrases.own_deed.cut_from(phrases.without_filler(sentence).strip())
    first = text.split(" ", 1)[0].rstrip(",.:")
    return text[:1].upper() + text[1:] if first.isalpha() else text  # no file name and no version


def prose_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph; a full stop of Chinese or Japanese needs no space."""
    return [part for sentence in sentences(plain(text), PROSE) for part in _WIDE_STOP.split(sentence)]


def _bare(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(" .。;:")
