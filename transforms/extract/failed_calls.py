"""Layer 1: a command that failed and later passed: what it printed, and what was changed in between."""

import re
from collections.abc import Iterator, Sequence

from cortex.hooks.prose.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.ground.candidate import (
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.ground.phrases import CHECK_COMMANDS
from cortex.transforms.extract.ground.statements import LONGEST_CHARS, plain
from cortex.transforms.extract.structural import (
    Call,
    calls_that_ran,
    shown_command,
)
from cortex.transforms.words.sentences import shortened

# A test run piped through `tail` succeeds although tests fail: its output tells.
RED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|errors?)\b|^(?:FAILED|FAIL|--- FAIL|ERROR)\b|\bBUILD FAILED\b",
    re.MULTILINE,
)
TELLING = re.compile(
    r"^.*(?:\w+(?:Error|Exception)\b.*|\berror\b[:\[].*|\bfatal: .*|\bFAILED\b.*|\bpanic: .*"
    r"|: error.*|not found.*)$",
    re.MULTILINE | re.IGNORECASE,
)
ERROR_CHARS = 120
SHOWN_COMMAND_CHARS = 60
FILES_NAMED = 4
# A failure that is fixed fifty calls later is fixed by something else.
CALLS_TO_FIX = 50


def error_candidates(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """Yield one candidate per failure that was fixed by a change: command, error, changed files."""
    calls = calls_that_ran(turns)
    open_until = -1
    for index, call in enumerate(calls):
        if index <= open_until or not is_red(call):
            continue
        fixed = _fixed_at(calls, index)
        if fixed is not None:
            open_until = fixed
            yield _resolved(calls[index : fixed + 1])


def is_red(call: Call) -> bool:
    """Return whether a command failed, or was a check whose output says that it did."""
    if call.tool not in SHELL_TOOLS:
        return False
    return call.failed or bool(CHECK_COMMANDS.search(call.argument) and RED.search(text_of(call.result)))


def _fixed_at(calls: Sequence[Call], index: int) -> int | None:
    """Return the position of the first later run of the same command that passed after an edit."""
    command = _program(calls[index].argument)
    has_edit = False
    for position in range(index + 1, min(len(calls), index + CALLS_TO_FIX)):
        call = calls[position]
        has_edit = has_edit or (call.tool in EDIT_TOOLS and not call.failed)
        if has_edit and call.tool in SHELL_TOOLS and _program(call.argument) == command and not is_red(call):
            return position
    return None


def _program(command: str) -> str:
    """Return what makes two commands the same: their check, or every word."""
    check = CHECK_COMMANDS.search(command)
    return check[0] if check else shown_command(command)


def _resolved(calls: Sequence[Call]) -> Candidate:
    failed, passed = calls[0], calls[-1]
    edited = [call.argument for call in calls if call.tool in EDIT_TOOLS and not call.failed]
    files = tuple(dict.fromkeys(edited))
    command = shortened(shown_command(failed.argument), SHOWN_COMMAND_CHARS)
    error = _error(text_of(failed.result))
    names = ", ".join(path.rsplit("/", 1)[-1] for path in files[:FILES_NAMED])
    text = f"`{command}` failed{f' ({error})' if error else ''}. Passed after changes to {names}."
    lines = (line_of(failed.turn), line_of(failed.result), line_of(passed.turn))
    return Candidate(
        failed.result, lines, shortened(text, LONGEST_CHARS), "ERROR_RESOLVED", "gotcha", "layer1:Bash",
        "mended", "tool", subject=command, files=files,
    )  # fmt: skip


def _error(output: str) -> str:
    """Return the line of an output that says what went wrong, or nothing."""
    telling = TELLING.search(output)
    line = plain(telling[0]) if telling else ""
    return line if len(line) <= ERROR_CHARS else ""  # half an error is none
