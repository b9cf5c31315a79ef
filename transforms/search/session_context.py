"""
What a session holds next to a result: the reply to a question that it shows, and the command that was run.
"""

import json
import re
from collections.abc import Iterable, Sequence

from cortex.hooks.evidence.question import Asked
from cortex.hooks.evidence.statements import asks_anything
from cortex.hooks.evidence.text import PEOPLE_KINDS, prose
from cortex.hooks.prose.sources import SHELL_TOOLS
from cortex.transforms.schemas import Row
from cortex.transforms.words.overlap import words_in
from cortex.transforms.words.sentences import PROSE, sentences

# A reply stands within so many lines of its question: thinking and the client's notes lie between.
_REPLY_LINES = 12
# Less than that in addition to what is announced is "Good observation!".
_FEWEST_WORDS = 6
# A command longer than this is a script, and not what one types.
_COMMAND_CHARS = 200
# Of a question's words so many are in a command that answers it by them alone.
_COMMAND_SHARE = 0.5
_PROSE = (*PEOPLE_KINDS, "text")
_IN_BACKTICKS = re.compile(r"`([\w./-]{2,40})")
_WORD = re.compile(r"[\w./-]{2,}")


def reply_to(line: int, turns: Sequence[Row], announces: re.Pattern[str]) -> Row | None:
    """
    Return what the assistant said next to what a person asked in a line; None if that asks nothing.

    Nor is there a reply where it only says what is done next, by how its sentences begin (`announces`).
    `turns` are those of one transcript, with kind, line and text, in their order.
    """
    turns = [turn for turn in turns if turn["kind"] in _PROSE]
    asked = [turn for turn in turns if turn["line"] == line and turn["kind"] in PEOPLE_KINDS]
    if not any(asks_anything(turn["text"]) for turn in asked):
        return None
    later = next((turn for turn in turns if turn["line"] > line), None)
    if later is None or later["kind"] != "text" or later["line"] > line + _REPLY_LINES:
        return None
    parts = sentences(" ".join(prose(later["text"]).split()), PROSE)
    says = " ".join(part for part in parts if not announces.search(part))
    return later if len(words_in(says)) >= _FEWEST_WORDS else None


def command_for(
    lines: Iterable[int], shown: str, turns: Sequence[Row], asked: Asked, within: int
) -> Row | None:
    """
    Return the call that ran the command which a question for the way to do something is after.

    `turns` are those of one transcript, in their order; `lines` those that a result rests on, `shown` its
    words. Looked at are commands that went well at most `within` lines away: the one right behind a line of
    the result, of a program that it names in backticks, or with half of the question's words; the best of
    these by all three, of equals the last.
    """
    places, named = frozenset(lines), frozenset(_IN_BACKTICKS.findall(shown))
    failed = {
        turn["tool_use_id"] for turn in turns if turn["tool_status"] in ("error", "rejected", "cancelled")
    }
    best, most = None, 0.0
    last_line_of_prose = -1
    for turn in turns:
        if turn["kind"] in _PROSE:
            last_line_of_prose = turn["line"]
        if not _is_command(turn) or turn["tool_use_id"] in failed:
            continue
        if not any(abs(turn["line"] - place) <= within for place in places):
            continue
        share = _share_within(f"{turn['text']} {_description(turn)}", asked)
        fit = (last_line_of_prose in places) + bool(named & set(_WORD.findall(turn["text"]))) + share
        if fit >= max(most, _COMMAND_SHARE):
            best, most = turn, fit
    return best


def _is_command(turn: Row) -> bool:
    return (
        turn["kind"] == "tool_call"
        and turn["tool_name"] in SHELL_TOOLS
        and len(turn["text"]) <= _COMMAND_CHARS
    )


def _share_within(text: str, asked: Asked) -> float:
    """Return the share of a question's words that a command has, also as parts of its words ("pytest")."""
    text, total = text.casefold(), sum(asked.weights.values())
    return sum(weight for word, weight in asked.weights.items() if word in text) / total if total else 0.0


def _description(turn: Row) -> str:
    """Return what the assistant says a call is for, "" where it says nothing."""
    try:
        given = json.loads(turn["tool_input"] or "{}")
    except ValueError:
        return ""
    return str(given.get("description") or "") if isinstance(given, dict) else ""
