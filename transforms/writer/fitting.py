"""Shortens a session until it fits into the cheap price tier: first the middle of what the assistant said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cortex.transforms.writer.rendering import PERSONS, PROSE_KIND, SessionLine, shortened_in_middle

# UTF-8 bytes of a token, on the safe side: English prose has about four, code three, and a sign of Chinese,
# Japanese or Korean three bytes.
BYTES_PER_TOKEN = 3
# Id, speaker and time of a line.
LINE_TOKENS = 12
# What the session is about stands at its beginning, and how things stand at its end.
OPENING_SHARE, CLOSING_SHARE = 0.1, 0.25
_CALLS = frozenset(("tool_call", "tool_result"))
_CLIENTS = frozenset(("summary", "recap", "program"))


@dataclass(frozen=True)
class _Step:
    """One thing given up: turns of `kinds` are cut to `chars` characters; to 0, they are left out."""

    kinds: frozenset[str]
    chars: int
    is_middle_only: bool = True


_STEPS = (
    _Step(frozenset((PROSE_KIND,)), 1_500),
    _Step(_CALLS, 120),
    _Step(frozenset((PROSE_KIND,)), 600),
    _Step(_CALLS, 0),
    _Step(frozenset((PROSE_KIND,)), 250),
    _Step(_CLIENTS, 2_000),
    _Step(_CALLS, 120, is_middle_only=False),
    _Step(frozenset((PROSE_KIND,)), 1_000, is_middle_only=False),
    _Step(_CALLS, 0, is_middle_only=False),
    _Step(PERSONS, 4_000),
    _Step(PERSONS, 1_000),
    _Step(frozenset((PROSE_KIND,)), 0),
    _Step(PERSONS | _CLIENTS, 300, is_middle_only=False),
)


def estimated_tokens(text: str) -> int:
    """
    Return about how many tokens a text has, rather too many than too few.

    >>> estimated_tokens("Use pnpm."), estimated_tokens("用 pnpm")
    (3, 3)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def fitted(lines: Sequence[SessionLine], tokens: int) -> list[SessionLine]:
    """
    Return lines of at most `tokens` estimated tokens, in their order; all of them as they are where they fit.

    Answers, calls and results between the opening and the end of the session are shortened and left out
    first, persons' words last. What then is still too long loses its middle.
    """
    shown = list(lines)
    middle = _middle(lines)
    for step in _STEPS:
        if tokens_of_lines(shown) <= tokens:
            return shown
        shown = [kept for line in shown if (kept := _after(step, line, middle)) is not None]
    while len(shown) > 1 and tokens_of_lines(shown) > tokens:
        del shown[len(shown) // 2]
    return shown


def _after(step: _Step, line: SessionLine, middle: frozenset[str]) -> SessionLine | None:
    """Return a line as a step leaves it, None where it leaves it out."""
    if line.turn["kind"] not in step.kinds or (step.is_middle_only and line.turn["turn_id"] not in middle):
        return line
    return replace(line, words=shortened_in_middle(line.words, step.chars)) if step.chars else None


def _middle(lines: Sequence[SessionLine]) -> frozenset[str]:
    """Return the turns between the opening and the end."""
    begin, end = int(len(lines) * OPENING_SHARE), int(len(lines) * (1 - CLOSING_SHARE))
    return frozenset(str(line.turn["turn_id"]) for line in lines[begin:end])


def tokens_of_line(line: SessionLine) -> int:
    """Return about how many tokens a line has with its id, speaker and time."""
    return estimated_tokens(line.words) + LINE_TOKENS


def tokens_of_lines(lines: Sequence[SessionLine]) -> int:
    """Return about how many tokens lines have."""
    return sum(map(tokens_of_line, lines))
