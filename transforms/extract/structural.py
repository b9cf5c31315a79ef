"""Layer 1: what tool calls that really ran, and the answers of a person, say without any guessing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from cortex.hooks.prose.sources import EDIT_TOOLS, READ_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.ground.candidate import (
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.ground.phrases import CHECK_COMMANDS
from cortex.transforms.words.sentences import shortened

# Enough to find the places again; a hot file is read a hundred times in one session.
LINES_KEPT = 12
COMMAND_CHARS = 160
CHECKS_KEPT = 4
# A path, a test's name or an option that chooses some: how a part was checked that day.
_OF_A_PART = re.compile(r"\s-(?:k|run|t|m)\s|::|\s\S*/\S*\.\w+|\s\.?/?[\w-]+/[\w./-]+")

QUIET_TAIL = re.compile(
    r"\s*(?:2>&1|\|\s*(?:head|tail|grep|cat|less|wc|sort)\b[^|]*|2>/dev/null|\|\|\s*true|;\s*echo .*)\s*$"
)
LEADING_CD = re.compile(r"^\s*cd\s+\S+\s*&&\s*")


@dataclass(frozen=True)
class Call:
    """A tool call that ran, with what came back."""

    turn: Turn
    result: Turn
    tool: str
    failed: bool

    @property
    def argument(self) -> str:
        """Return the salient argument: a path, a command, a pattern."""
        return text_of(self.turn)


def calls_that_ran(turns: Sequence[Turn]) -> list[Call]:
    """Return the calls of a thread that were neither refused nor cancelled, with their results, in order."""
    results = {
        turn["tool_use_id"]: turn for turn in turns if turn["kind"] == "tool_result" and turn["tool_use_id"]
    }
    calls = []
    for turn in turns:
        result = results.get(turn["tool_use_id"]) if turn["kind"] == "tool_call" else None
        if result is not None and result["tool_status"] in ("ok", "error"):
            calls.append(Call(turn, result, str(turn["tool_name"] or ""), result["tool_status"] == "error"))
    return calls


def input_of(turn: Turn) -> Mapping[str, Any]:
    """Return the input of a call; empty if it was cut and is no longer JSON."""
    try:
        given = orjson.loads(turn["tool_input"] or "{}")
    except orjson.JSONDecodeError:
        return {}
    return given if isinstance(given, dict) else {}


def objects_of(given: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the list `key` of an input; none if it holds anything else."""
    items = given.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def field_text(given: Mapping[str, Any], key: str) -> str:
    """Return the text of a field of an input; empty if it holds anything else."""
    words = given.get(key)
    return words if isinstance(words, str) else ""


def structural_candidates(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """
    Yield what one thread's tool calls and answers say.

    `turns` are the turns of one transcript in its order, without rewound ones and without those of subagents.
    """
    calls = calls_that_ran(turns)
    yield from _files(calls)
    yield from _commands(calls, turns)
    yield from _working_checks(calls)


def _files(calls: Sequence[Call]) -> Iterator[Candidate]:
    """Yield one event a file that was changed or read, resting on all calls that did it."""
    for tools, event_type, verb in (
        (EDIT_TOOLS, "FILE_MODIFIED", "Changed"),
        (READ_TOOLS, "FILE_EXPLORED", "Read"),
    ):
        by_path: dict[str, list[Call]] = {}
        for call in calls:
            if call.tool in tools and not call.failed and call.argument:
                for path in _paths(call):
                    by_path.setdefault(path, []).append(call)
        for path, group in by_path.items():
            lines = tuple(dict.fromkeys(line_of(call.turn) for call in group))[:LINES_KEPT]
            yield _event(group[0].turn, lines, f"{verb} {path}", event_type, group[0].tool, files=(path,))


def _paths(call: Call) -> Sequence[str]:
    """Return the files of a call: its argument, or all that one patch changes."""
    paths = input_of(call.turn).get("paths") if call.tool == "MultiEdit" else None
    named = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    return named or [call.argument]


def _commands(calls: Sequence[Call], turns: Sequence[Turn]) -> Iterator[Candidate]:
    """Yield one event a distinct command that ran and succeeded, the person's own included."""
    seen: dict[str, list[Turn]] = {}
    for turn in [
        *(call.turn for call in calls if call.tool in SHELL_TOOLS and not call.failed),
        *_shells(turns),
    ]:
        seen.setdefault(shown_command(text_of(turn)), []).append(turn)
    for command, group in seen.items():
        if command:
            lines = tuple(line_of(turn) for turn in group)[:LINES_KEPT]
            yield _event(
                group[0], lines, f"Ran `{command}`", "COMMAND_RUN", str(group[0]["tool_name"] or "shell")
            )


def _shells(turns: Sequence[Turn]) -> Iterator[Turn]:
    return (turn for turn in turns if turn["kind"] == "shell")


def shown_command(command: str) -> str:
    """
    Return a command on one line, without a change of directory before it and a filter of its output after.

    >>> shown_command("cd /src/x && uv run pytest -q 2>&1 | tail -5")
    'uv run pytest -q'
    """
    text = LEADING_CD.sub("", " ".join(command.split()))
    shorter = QUIET_TAIL.sub("", text)
    while shorter != text:
        text, shorter = shorter, QUIET_TAIL.sub("", shorter)
    return shortened(text, COMMAND_CHARS)


def _working_checks(calls: Sequence[Call]) -> Iterator[Candidate]:
    """Yield how tests, lint and builds were called with success: one memory a session."""
    working: dict[str, list[Call]] = {}
    for call in calls:
        if call.tool in SHELL_TOOLS and not call.failed and CHECK_COMMANDS.search(call.argument[:300]):
            command = shown_command(call.argument)
            if len(command) <= 90 and "<<" not in command:
                working.setdefault(command, []).append(call)
    best = sorted(working.items(), key=_usefulness)[:CHECKS_KEPT]
    if best:
        lines = tuple(line_of(call.turn) for _, group in best for call in group)[:LINES_KEPT]
        text = "Commands that worked for checks and builds here: " + ", ".join(
            f"`{command}`" for command, _ in best
        )
        last = best[0][1][-1].turn
        yield Candidate(
            last,
            lines,
            text,
            "KNOWLEDGE_ACQUIRED",
            "pattern",
            "layer1:Bash",
            "checks",
            "assistant",
            subject="commands that worked",
        )


def _usefulness(check: tuple[str, list[Call]]) -> tuple[bool, int, int]:
    """Return the order of checks: those of everything before those of a part, then the most frequent."""
    command, calls = check
    return bool(_OF_A_PART.search(command)), -len(calls), line_of(calls[0].turn)


def _event(
    turn: Turn, lines: tuple[int, ...], text: str, event_type: str, tool: str, files: tuple[str, ...] = ()
) -> Candidate:
    """Return an event that makes no memory by itself."""
    return Candidate(
        turn,
        lines,
        text,
        event_type,
        None,
        f"layer1:{tool}",
        "trace",
        str(turn["trust"]),
        files=files,
    )
