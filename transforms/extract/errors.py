"""Layer 1: a command that failed and later passed: what went wrong, why, and what was changed in between."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from cortex.hooks.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import CHECK_COMMANDS
from cortex.transforms.extract.sentences import LONGEST_CHARS, SHORTEST_CHARS, plain
from cortex.transforms.extract.statements import passages
from cortex.transforms.extract.structural import (
    Call,
    calls_that_ran,
    shown_command,
)
from cortex.transforms.extract.thread import PERSON
from cortex.transforms.words.scripts import latin_length
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
CAUSE_CHARS = 180
SHOWN_COMMAND_CHARS = 60
FILES_NAMED = 4
# Words that announce, report success or offer choices give no cause.
NO_CAUSE = frozenset(("narrates", "is_transient", "counts_tests", "speaks_of_done", "under_options", "asks"))
# A failure that is fixed fifty calls later is fixed by something else.
CALLS_TO_FIX = 50


def error_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Candidate]:
    """Yield one candidate per failure that was fixed by a change: command, error, cause, changed files."""
    calls = calls_that_ran(turns)
    open_until = -1
    for index, call in enumerate(calls):
        if index <= open_until or not is_red(call):
            continue
        fixed = _fixed_at(calls, index)
        if fixed is not None:
            open_until = fixed
            yield _resolved(turns, calls[index : fixed + 1], lexicon)


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


def _resolved(turns: Sequence[Turn], calls: Sequence[Call], lexicon: Lexicon) -> Candidate:
    failed, passed = calls[0], calls[-1]
    edited = [call.argument for call in calls if call.tool in EDIT_TOOLS and not call.failed]
    files = tuple(dict.fromkeys(edited))
    cause, cause_line = _cause(turns, failed, lexicon)
    command = shortened(shown_command(failed.argument), SHOWN_COMMAND_CHARS)
    error = _error(text_of(failed.result))
    names = ", ".join(path.rsplit("/", 1)[-1] for path in files[:FILES_NAMED])
    parts = [f"`{command}` failed", f" ({error})" if error else "", f": {cause.rstrip('.')}" if cause else ""]
    text = f"{''.join(parts)}. Passed after changes to {names}."
    lines = [cause_line] * bool(cause) + [line_of(failed.turn), line_of(failed.result), line_of(passed.turn)]
    return Candidate(
        failed.result, tuple(lines), shortened(text, LONGEST_CHARS), "ERROR_RESOLVED", "gotcha",
        "layer1:Bash", {"is_mended": 1.0, "names_cause": float(bool(cause))},
        "tool", reason=cause or None, subject=command, files=files,
    )  # fmt: skip


def _error(output: str) -> str:
    """Return the line of an output that says what went wrong, or nothing."""
    telling = TELLING.search(output)
    line = plain(telling[0]) if telling else ""
    return line if len(line) <= ERROR_CHARS else ""  # half an error is none


def _cause(turns: Sequence[Turn], failed: Call, lexicon: Lexicon) -> tuple[str, int]:
    """Return what the assistant says first after a failure, unless it is an announcement, and its line."""
    start = bisect_right(turns, line_of(failed.result), key=line_of)
    after = (turns[position] for position in range(start, len(turns)))
    turn_after = next((turn for turn in after if turn["kind"] == "text" or turn["kind"] in PERSON), None)
    if turn_after is None or turn_after["kind"] != "text":
        return "", 0
    for passage in passages(text_of(turn_after), lexicon.phrases)[:2]:
        text = lexicon.phrases.without_filler(passage.text)
        shown = set(lexicon.shown_by(text, passage.heading, "assistant"))
        if latin_length(text) >= SHORTEST_CHARS and not shown & NO_CAUSE:
            return shortened(text, CAUSE_CHARS), line_of(turn_after)
    return "", 0
