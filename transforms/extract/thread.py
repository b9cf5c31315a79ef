"""The course of one session: its turns in order, and where in that course each prose turn stands."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.transforms.extract.candidate import Turn, text_of
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.words.scripts import latin_length

PERSON = frozenset({"prompt", "command", "rejection", "choice", "plan"})
BEFORE = PERSON | {"text", "tool_call", "tool_result", "shell"}
EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})


# A longer answer explains or reports, one of the second length is a document; the weights of both were
# fitted with these lengths.
LONG_TURN_CHARS = 600
VERY_LONG_TURN_CHARS = 2_500


@dataclass(frozen=True)
class Place:
    """Where a prose turn stands: who speaks, what it answers, and named marks of its neighbourhood."""

    speaker: str  # user, assistant
    answers: Turn | None
    marks: frozenset[str] = field(default=frozenset())
    next_words: str = ""  # of a person, after the turn


def places(turns: Sequence[Turn], phrases: Phrasebook) -> list[Place | None]:
    """Return the place of each turn, in the order given; None for turns that are not prose."""
    following = _following_prompts(turns)
    in_order: list[Place | None] = []
    last_prompt: Turn | None = None
    last_text: Turn | None = None
    since_prompt = 0
    prompts_seen = 0
    last_text_index = max((i for i, turn in enumerate(turns) if turn["kind"] == "text"), default=-1)
    for index, turn in enumerate(turns):
        kind = turn["kind"]
        if kind in PERSON:
            marks = {f"kind_{kind}"} if kind != "prompt" else set()
            if not prompts_seen:
                marks.add("opening")
            in_order.append(Place("user", last_text, frozenset(marks), _words(following[index])))
            last_prompt, since_prompt = turn, 0
            prompts_seen += 1
        elif kind == "text":
            marks = _text_marks(turns, index, following[index], since_prompt, last_prompt, phrases)
            if index == last_text_index:
                marks.add("session_end")
            in_order.append(Place("assistant", last_prompt, frozenset(marks), _words(following[index])))
            last_text, since_prompt = turn, since_prompt + 1
        else:
            in_order.append(None)
    return in_order


def _words(turn: Turn | None) -> str:
    return text_of(turn) if turn is not None else ""


def _following_prompts(turns: Sequence[Turn]) -> list[Turn | None]:
    """Return for each turn the next words of a person, if any."""
    following: list[Turn | None] = [None] * len(turns)
    upcoming: Turn | None = None
    for index in range(len(turns) - 1, -1, -1):
        following[index] = upcoming
        if turns[index]["kind"] in PERSON:
            upcoming = turns[index]
    return following


def _neighbour(turns: Sequence[Turn], index: int, step: int, kinds: frozenset[str]) -> Turn | None:
    """Return the nearest turn of one of `kinds` after (step 1) or before (step -1) a position."""
    position = index + step
    while 0 <= position < len(turns):
        if turns[position]["kind"] in kinds:
            return turns[position]
        position += step
    return None


def _text_marks(
    turns: Sequence[Turn],
    index: int,
    following: Turn | None,
    since_prompt: int,
    last_prompt: Turn | None,
    phrases: Phrasebook,
) -> set[str]:
    marks: set[str] = set()
    after = _neighbour(turns, index, 1, PERSON | {"text", "tool_call"})
    before = _neighbour(turns, index, -1, BEFORE)
    if after is None or after["kind"] in PERSON:
        marks.add("final")
        if following is not None and phrases.complaint.search(text_of(following)[:300]):
            marks.add("refuted")
        if following is not None and phrases.acceptance.search(text_of(following)):
            marks.add("accepted")
    elif after["kind"] == "tool_call":
        marks.add("before_edit" if after["tool_name"] in EDITS else "before_call")
    if before is not None and before["kind"] == "tool_result" and before["tool_status"] == "error":
        marks.add("after_error")
    if since_prompt == 0:
        marks.add("reply")
        if last_prompt is not None and phrases.complaint.search(text_of(last_prompt)[:300]):
            marks.add("reply_to_complaint")
    if last_prompt is not None and phrases.opinion_asked.search(text_of(last_prompt)):
        marks.add("argued")
    length = latin_length(text_of(turns[index]))
    if length > LONG_TURN_CHARS:
        marks.add("long_turn")
    if length > VERY_LONG_TURN_CHARS:
        marks.add("very_long_turn")
    return marks
