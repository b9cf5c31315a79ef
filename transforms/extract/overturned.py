"""What a later turn of a session takes back, refutes, mends or replaces: candidates it closes (spec 5)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cortex.transforms.extract.candidate import Candidate, Turn

# A rule reads the turns of a thread and the candidates that rest on it, and names those that are closed:
# position of the candidate, line of the turn that closes it.
Closing = Callable[[Sequence[Turn], Sequence[Candidate]], Iterable[tuple[int, int]]]

CLOSINGS: tuple[Closing, ...] = ()


def with_overturned(candidates: Sequence[Candidate], turns: Sequence[Turn]) -> list[Candidate]:
    """
    Return the candidates of one thread in their order, those that a later turn closes with the line of it.

    `turns` are the thread's, in order. Where several turns close a candidate the first one counts.
    """
    closed: dict[int, int] = {}
    for rule in CLOSINGS:
        for position, line in rule(turns, candidates):
            closed[position] = min(line, closed.get(position, line))
    return [
        _overturned(candidate, closed[position]) if position in closed else candidate
        for position, candidate in enumerate(candidates)
    ]


def _overturned(candidate: Candidate, line: int) -> Candidate:
    return replace(candidate, overturned_at=line, signals={**candidate.signals, "is_overtaken": 1.0})
