"""How a claim or proposal stands at the end of its session: confirmed, answered, or neither (spec 5)."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from cortex.hooks.sources import SHELL_TOOLS
from cortex.transforms.extract.candidate import PERSONS_LAYERS, Candidate, Turn, line_of, text_of
from cortex.transforms.extract.errors import is_red
from cortex.transforms.extract.git import COMMIT
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import CHECK_COMMANDS
from cortex.transforms.extract.signals import CLAIMS
from cortex.transforms.extract.structural import calls_that_ran
from cortex.transforms.extract.thread import PERSON


class _Course:
    """The course of one thread, as far as it says what became of claims."""

    def __init__(self, turns: Sequence[Turn], lexicon: Lexicon) -> None:
        self._turns, self._lexicon = turns, lexicon
        self._prompt_lines = [line_of(turn) for turn in turns if turn["kind"] in PERSON]

    @cached_property
    def _confirmed_until(self) -> int:
        """The last line that confirms what stands before it: a check that passed, a commit, an agreement."""
        calls = [call for call in calls_that_ran(self._turns) if call.tool in SHELL_TOOLS]
        lines = [
            line_of(call.turn)
            for call in calls
            if not is_red(call) and (CHECK_COMMANDS.search(call.argument) or COMMIT.search(call.argument))
        ]
        lines += [
            line_of(turn)
            for turn in self._turns
            if turn["kind"] in PERSON and self._lexicon.phrases.acceptance.search(text_of(turn))
        ]
        return max(lines, default=0)

    def is_confirmed(self, line: int) -> bool:
        """Return whether anything after a line confirms what it claims."""
        return line < self._confirmed_until

    def is_answered(self, line: int) -> bool:
        """Return whether a person spoke after a line."""
        return bisect_right(self._prompt_lines, line) < len(self._prompt_lines)


def standing_signals(
    candidates: Sequence[Candidate], turns: Sequence[Turn], lexicon: Lexicon
) -> list[dict[str, float]]:
    """
    Return the signals of how each candidate of one thread stands at its end, in the order given.

    Only what an assistant claims has any: a person's words stand by themselves.
    """
    course = _Course(turns, lexicon)
    return [_signals(candidate, course, lexicon) if _is_claim(candidate) else {} for candidate in candidates]


def _is_claim(candidate: Candidate) -> bool:
    is_prose = candidate.layer.startswith("layer2") and not candidate.layer.endswith(PERSONS_LAYERS)
    return is_prose and candidate.memory_type is not None and bool(candidate.lines)


def _signals(candidate: Candidate, course: _Course, lexicon: Lexicon) -> dict[str, float]:
    line = max(candidate.lines)
    is_claimed = lexicon.phrases.names_cause.search(candidate.text) or candidate.signals.keys() & CLAIMS
    is_proposed = lexicon.phrases.proposes.search(candidate.text)
    shown = {
        "is_unconfirmed": is_claimed and not course.is_confirmed(line),
        "is_open_proposal": is_proposed and not course.is_answered(line),
    }
    return {name: 1.0 for name, is_so in shown.items() if is_so}
