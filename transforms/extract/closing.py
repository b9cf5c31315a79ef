"""The last report of a session: what the assistant says at the end that it did, and what it offers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cortex.transforms.extract.candidate import Turn, text_of
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.sentences import plain, prose_blocks
from cortex.transforms.extract.thread import PERSON
from cortex.transforms.words.sentences import PROSE, sentences

_STATEMENTS = 4
_SHORTEST_CHARS = 20
_OWN_DEED = re.compile(
    r"^(?:i|we)(?:'ve| have|'ve now)? (?:(?:now|also|just|successfully|already) )*(?=[a-z]+(?:ed|en|d|t)\b)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"^(?:would you like(?: me)? to|want me to|should i|shall i|do you want me to)\s+(.{8,})\?$",
    re.IGNORECASE,
)
_WIDE_STOP = re.compile(r"(?<=[。！？])(?=\S)")


@dataclass(frozen=True)
class Closing:
    """What the last report states, sentence by sentence, and the turn that it is."""

    statements: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()


def closing_report(turns: Sequence[Turn], phrases: Phrasebook) -> Closing:
    """Return what the last answer of a thread that states something says."""
    for turn in _final_texts(turns)[:1]:
        statements = tuple(_statements(text_of(turn), phrases))[:_STATEMENTS]
        if statements:
            return Closing(statements, (turn,))
    return Closing()


def unanswered_offer(turns: Sequence[Turn]) -> str:
    """Return what the assistant offers to do in the last words of a thread, if nobody answered."""
    last = next((turn for turn in reversed(turns) if turn["kind"] in PERSON or turn["kind"] == "text"), None)
    if last is None or last["kind"] != "text":
        return ""
    blocks = prose_blocks(text_of(last))
    for sentence in reversed(_sentences(blocks[-1].text) if blocks else []):
        offered = _OFFER.match(sentence)
        if offered:
            return offered[1]
    return ""


def _final_texts(turns: Sequence[Turn]) -> list[Turn]:
    """Return the last answers before each of the person's turns and at the end, latest first."""
    finals: list[Turn] = []
    is_open = True
    for turn in reversed(turns):
        if turn["kind"] == "text" and is_open:
            finals.append(turn)
            is_open = False
        elif turn["kind"] in PERSON:
            is_open = True
        elif turn["kind"] == "tool_call":
            is_open = False
    return finals


def _statements(text: str, phrases: Phrasebook) -> list[str]:
    stated = (
        _stated(sentence, phrases) for block in prose_blocks(text) for sentence in _sentences(block.text)
    )
    return [statement for statement in stated if statement]


def _stated(sentence: str, phrases: Phrasebook) -> str:
    """Return a sentence without filler and first person; nothing of a question or an announcement."""
    text = phrases.without_filler(sentence).strip()
    if text.endswith(("?", "？", ":", "：")) or phrases.announces.search(text):
        return ""
    text = _OWN_DEED.sub("", text)
    return text[:1].upper() + text[1:] if len(text) >= _SHORTEST_CHARS else ""


def _sentences(text: str) -> list[str]:
    return [part for sentence in sentences(plain(text), PROSE) for part in _WIDE_STOP.split(sentence)]
