"""Layer 1: what a session came to: its goal, what was done and proved, what is open (spec 5.5)."""

import re
from collections.abc import Iterator, Sequence

from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.closing import Closing, closing_report, unanswered_offer
from cortex.transforms.extract.dialogue import without_pasted_lines
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.plans import plan_title, request
from cortex.transforms.extract.structural import LINES_KEPT, calls_that_ran
from cortex.transforms.extract.thread import PERSON
from cortex.transforms.extract.working_state import WorkingState, working_state
from cortex.transforms.identity import content_id
from cortex.transforms.words.sentences import shortened

# Read record by record on the labelled sessions, about four of five say what the next session needs and few
# mislead; as certain of itself as an approved plan, for it is put together and not claimed.
OUTCOME_CONFIDENCE = 0.75
GOAL_CHARS = 100
OUTCOME_CHARS = 200
OPEN_CHARS = 130
OUTCOME_PARTS = ("Goal", "Outcome", "Open")
_PART = re.compile(rf"(?:^|(?<=\. ))({'|'.join(OUTCOME_PARTS)}): ")


def outcome_parts(text: str) -> dict[str, str]:
    """
    Return what an outcome record says, by `goal`, `outcome` and `open`; parts that it lacks are absent.

    >>> outcome_parts("Goal: Add tar support. Outcome: Tar files are read; tests pass. Open: Not pushed.")
    {'goal': 'Add tar support', 'outcome': 'Tar files are read; tests pass', 'open': 'Not pushed'}
    """
    _, *cells = _PART.split(text)
    return {name.lower(): words.rstrip(" .") for name, words in zip(cells[::2], cells[1::2], strict=True)}


def outcome_candidates(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """
    Yield the outcome record of one thread, or nothing where nothing can be said well.

    `turns` are the turns of a main thread in their order. The record rests on the last of the turns that it
    is put together from, so that of two records of a session the later one counts.
    """
    if not any(turn["kind"] in PERSON for turn in turns):
        return
    state = working_state(turns, calls_that_ran(turns))
    if not state.has_worked:
        return
    report = closing_report(turns, phrases)
    outcome = _outcome(state, report)
    still_open = _open(state, unanswered_offer(turns))
    if not outcome:
        return
    rests_on = sorted([*state.turns, *report.turns], key=line_of)
    named = [("Goal", _goal(turns)), ("Outcome", outcome), ("Open", still_open)]
    text = " ".join(f"{part}: {words}." for part, words in named if words)
    lines = dict.fromkeys(line_of(turn) for turn in reversed(rests_on))
    yield Candidate(
        rests_on[-1], tuple(lines)[:LINES_KEPT], text, "SESSION_OUTCOME", "outcome", "layer1:outcome", {},
        "assistant", subject=subject_of_session(rests_on[-1]), confidence=OUTCOME_CONFIDENCE,
    )  # fmt: skip


def subject_of_session(turn: Turn) -> str:
    """Return the key by which the record of a session is known again when the session has grown."""
    return content_id("outcome", str(turn["project_id"]), str(turn["session_id"]))


def _goal(turns: Sequence[Turn]) -> str:
    """Return what was asked for last: the heading of a plan, or a request in its own sentence."""
    for turn in reversed(turns):
        if turn["kind"] == "plan" and (title := plan_title(text_of(turn))):
            return _bare(title, GOAL_CHARS)
        if turn["kind"] in ("prompt", "command"):
            asked = request(without_pasted_lines(text_of(turn)))
            if asked:
                return _bare(asked, GOAL_CHARS)
    return ""


def _outcome(state: WorkingState, report: Closing) -> str:
    return _joined([*state.done, *report.statements], OUTCOME_CHARS)


def _open(state: WorkingState, offer: str) -> str:
    return _joined([*state.open, *([f"offered, unanswered: {offer}"] if offer else [])], OPEN_CHARS)


def _joined(statements: Sequence[str], chars: int) -> str:
    """Return as many statements as fit, in their order; the first is cut where it is too long."""
    kept: list[str] = []
    for statement in statements:
        bare = statement.rstrip(" .:;")
        if kept and len("; ".join([*kept, bare])) > chars:
            continue
        kept.append(_bare(bare, chars))
    return "; ".join(kept)


def _bare(text: str, chars: int) -> str:
    """Return `text` within `chars` without a full stop, and without words that would open another part."""
    return _PART.sub(r"\1 ", shortened(text, chars)).rstrip(" .:;")
