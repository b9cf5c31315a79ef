"""The commands of a transcript as passages: what was run with success, and what it was run for."""

import re
from collections.abc import Iterator, Mapping, Sequence

from cortex.hooks.prose.sources import SHELL_TOOLS
from cortex.transforms.extract.structural import Call, calls_that_ran, field_text, input_of, shown_command
from cortex.transforms.schemas import Row

# A longer one is a script written for the moment; nobody asks for it again.
_LONGEST_CHARS = 200
# Programs that look around or move files: how that is done needs no memory.
_LOOKS = re.compile(
    r"(?:ls|cat|head|tail|less|grep|rg|find|fd|sed -n|awk|wc|echo|printf|pwd|which|type|tree|stat|file|sleep"
    r"|ps|kill|cd|mkdir|touch|cp|mv|rm|ln|chmod|diff|sort|jq"
    r"|git(?: -C \S+)? (?:status|diff|log|show|branch|add|blame|ls-files|rev-parse|stash list|remote -v))\b"
)


def commands_run(turns: Sequence[Row]) -> Iterator[Row]:
    """
    Yield the commands of one transcript that went well, each once where it ran last, as rows of its turns.

    Takes turns by line, with `tool_name`, `tool_use_id`, `tool_status` and `tool_input`. The text is the
    command in backticks behind what the assistant said that it is for.
    """
    last: dict[str, Call] = {}
    for call in calls_that_ran(turns):
        command = shown_command(call.argument)
        is_short = len(call.argument) <= _LONGEST_CHARS and "\n" not in call.argument.strip()
        if (
            call.tool in SHELL_TOOLS
            and not call.failed
            and is_short
            and command
            and not _LOOKS.match(command)
        ):
            last.pop(command, None)
            last[command] = call
    for command, call in last.items():
        yield {**call.turn, "text": _text(command, call.turn)}


def _text(command: str, turn: Mapping[str, object]) -> str:
    purpose = " ".join(field_text(input_of(dict(turn)), "description").split()).rstrip(".:")
    return f"{purpose}: `{command}`" if purpose else f"`{command}`"
