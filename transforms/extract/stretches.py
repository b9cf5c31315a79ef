"""The stretches of a session: what a person said, and what was done and answered until they spoke again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.hooks.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.candidate import Turn, text_of
from cortex.transforms.extract.git import COMMIT, MERGED, PR_CREATE, PUSH
from cortex.transforms.extract.phrases import CHECK_COMMANDS
from cortex.transforms.extract.thread import PERSON

WORK = (COMMIT, PUSH, PR_CREATE, MERGED, CHECK_COMMANDS)


def is_work(call: Turn) -> bool:
    """Return whether a call changes a file, commits, publishes or checks."""
    if call["tool_name"] in EDIT_TOOLS:
        return True
    return call["tool_name"] in SHELL_TOOLS and any(sign.search(text_of(call)) for sign in WORK)


@dataclass
class Stretch:
    """One turn of a person and all that follows until their next one."""

    asked: Turn | None
    turns: list[Turn] = field(default_factory=list)

    @property
    def answer(self) -> Turn | None:
        """Return the last words of the assistant, if no call comes after them."""
        spoken = [turn for turn in self.turns if turn["kind"] in ("text", "tool_call")]
        return spoken[-1] if spoken and spoken[-1]["kind"] == "text" else None

    @property
    def has_worked(self) -> bool:
        """Return whether files were changed or commands run that change or check something."""
        return any(turn["kind"] == "tool_call" and is_work(turn) for turn in self.turns)

    @property
    def edited(self) -> list[str]:
        """Return the files that were to be changed, in the order of their last change."""
        calls = [turn for turn in self.turns if turn["tool_name"] in EDIT_TOOLS and text_of(turn)]
        return list(dict.fromkeys(text_of(turn) for turn in reversed(calls)))

    @property
    def is_answered(self) -> bool:
        """Return whether the assistant said anything at its end."""
        return self.answer is not None

    @property
    def words(self) -> str:
        """Return what the person said."""
        return text_of(self.asked) if self.asked is not None else ""


def stretches(turns: Sequence[Turn]) -> list[Stretch]:
    """Return the stretches of one thread in order; what comes before the first words belongs to nobody."""
    parts = [Stretch(None)]
    for turn in turns:
        if turn["kind"] in PERSON:
            parts.append(Stretch(turn))
        else:
            parts[-1].turns.append(turn)
    return parts if parts[0].turns else parts[1:]
