"""Who leads a session: a person, perhaps through a program that drives the client, or a program (spec 5)."""

import re
from collections.abc import Sequence
from datetime import timedelta

from cortex.transforms.extract.ground.candidate import Turn, text_of
from cortex.transforms.words.overlap import share_of_all, words_in

# Words that only somebody at the client can give: no program is asked for them.
AT_THE_CLIENT = frozenset(("command", "rejection", "choice", "plan", "shell"))
ASSISTANTS = frozenset(("text", "thinking", "tool_call", "tool_result"))
# A person reads the answer before the next prompt; a program answers within a fraction of a second.
PERSONS_PAUSE = timedelta(seconds=5)
PROGRAMS_PAUSE = timedelta(seconds=2)
# One prompt and its answer are a call; from the second answer to an answer on somebody converses.
FEWEST_FOLLOW_UPS = 2
# A program's prompts are one form filled in again and again; "yes" and "go on" are everybody's.
SAME_FORM_SHARE = 0.6
FEWEST_FORM_WORDS = 4
# What the client or another program reports in a prompt's place.
_REPORT = re.compile(r"<(?:task-notification|teammate-message)")
# Marks, in the turns of a thread, a person's words that a program sent for them.
_SENT = "is_sent"
_OPENING = re.compile(r"<([A-Za-z][\w-]*)>")


def is_led_by_person(thread: Sequence[Turn]) -> bool:
    """
    Return whether a person leads a main thread, given its turns in order.

    A thread without any prompt, such as one whose beginning is cut off, counts as a person's. Prompts marked
    as a program's are a person's where they converse: several, each at a reader's pace and in words of its
    own. Typed ones are a program's where all of several come at once.
    """
    if any(turn["kind"] in AT_THE_CLIENT for turn in thread):
        return True
    typed = [turn for turn in thread if turn["kind"] == "prompt"]
    sent = [turn for turn in thread if _is_sent(turn)]
    if typed:
        pauses = _pauses(thread, "prompt")
        return len(pauses) <= FEWEST_FOLLOW_UPS or max(pauses) >= PROGRAMS_PAUSE
    return not sent or _converses(thread, sent)


def with_prompts_of_person(thread: Sequence[Turn]) -> list[Turn]:
    """Return a person's thread with the words that they sent through a program as prompts of theirs."""
    return [
        {**turn, "kind": "prompt", "trust": "user", "text": without_wrapping(text_of(turn)), _SENT: True}
        if _is_sent(turn)
        else turn
        for turn in thread
    ]


def is_sent_by_program(turn: Turn) -> bool:
    """Return whether a prompt of `with_prompts_of_person` came through a program."""
    return bool(turn.get(_SENT))


def without_wrapping(text: str) -> str:
    """
    Return a prompt without the blocks in tags that a program put before the person's words.

    >>> without_wrapping("<system_instruction>Work here.</system_instruction> Add tar support.")
    'Add tar support.'
    """
    while opening := _OPENING.match(text):
        _, closing, rest = text.partition(f"</{opening[1]}>")
        if not closing:
            break
        text = rest.lstrip()
    return text


def _is_sent(turn: Turn) -> bool:
    return turn["kind"] == "program" and turn["agent_id"] is None and not _REPORT.match(text_of(turn))


def _converses(thread: Sequence[Turn], sent: Sequence[Turn]) -> bool:
    pauses = _pauses(thread, "program")
    if len(pauses) < FEWEST_FOLLOW_UPS or sorted(pauses)[len(pauses) // 2] < PERSONS_PAUSE:
        return False
    words = [set(words_in(without_wrapping(text_of(turn)))) for turn in sent[1:]]
    again = sum(
        any(share_of_all(own, earlier) >= SAME_FORM_SHARE for earlier in words[:at])
        for at, own in enumerate(words)
        if len(own) >= FEWEST_FORM_WORDS
    )
    return again <= len(words) / 2


def _pauses(thread: Sequence[Turn], kind: str) -> list[timedelta]:
    """Return the time between the assistant's last sign of life and each later prompt; copies have none."""
    pauses: list[timedelta] = []
    last = None
    for turn in thread:
        if turn["kind"] in ASSISTANTS:
            last = turn["said_at"]
        elif turn["kind"] == kind and last is not None and turn["said_at"] is not None:
            if turn["said_at"] > last:
                pauses.append(turn["said_at"] - last)
            last = None
    return pauses
