"""Layer 1: what tool calls that really ran, and the answers of a person, say without any guessing."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from cortex.hooks.prose.own_prose import EDIT_TOOLS, READ_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.language.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.language.phrases import CHECK_COMMANDS
from cortex.transforms.extract.language.statements import MAX_CHARS, cut_between, plain, prose_blocks
from cortex.transforms.words.sentences import shortened

# Enough to find the places again; a hot file is read a hundred times in one session.
LINES_KEPT = 12
COMMAND_CHARS = 160
CHECKS_KEPT = 4
_SUBCOMMAND = re.compile(r" [a-z]+(?= |$)")  # "ruff check" and "ruff format" are two
# A path, a test's name or an option that chooses some: how a part was checked that day. One that leaves some
# out (`-m "not slow"`) is how the rest is checked every day.
_OF_A_PART = re.compile(r"\s-(?:k|run|t|m)\s(?![\"']?not\b)|::|\s\S*/\S*\.\w+|\s\.?/?[\w-]+/[\w./-]+")

# The value of an option with a slash is no path: `--platform linux/amd64`.
_OPTION_VALUE = re.compile(r"\s--[\w-]+[ =](?!\S*\.\w)[\w-]+/\S*")
_QUOTED = re.compile(r"`([^`]+)`")
QUIET_TAIL = re.compile(
    r"\s*(?:2>&1|\|\s*(?:head|tail|grep|cat|less|wc|sort)\b(?:\"[^\"]*\"|'[^']*'|[^|\"'])*|2>/dev/null"
    r"|\|\|\s*true|;\s*echo .*)\s*$"
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


def stopped_checks(turns: Sequence[Turn]) -> list[tuple[Turn, str]]:
    """Return the calls of checks that a person refused and that did not run later, with what they said."""
    words = {turn["tool_use_id"]: text_of(turn) for turn in turns if turn["kind"] == "rejection"}
    refused = {turn["tool_use_id"] for turn in turns if turn["tool_status"] == "rejected"} | words.keys()
    stopped: dict[str, tuple[Turn, str]] = {}
    for turn in turns:
        if turn["kind"] != "tool_call" or turn["tool_name"] not in SHELL_TOOLS:
            continue
        command = shown_command(text_of(turn))
        stopped.pop(command, None)
        if turn["tool_use_id"] in refused and CHECK_COMMANDS.search(command):
            stopped[command] = (turn, " ".join(words.get(turn["tool_use_id"], "").split()))
    return list(stopped.values())


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


CHECKS_SUBJECT = "commands that worked"
_CHECKS_LEAD = "Commands that worked for checks and builds here: "


def _working_checks(calls: Sequence[Call]) -> Iterator[Candidate]:
    """Yield how tests, lint and builds were called with success, each in one way: one memory a session."""
    working: dict[str, list[Call]] = {}
    for call in calls:
        if call.tool in SHELL_TOOLS and not call.failed and CHECK_COMMANDS.search(call.argument[:300]):
            command = shown_command(call.argument)
            if (
                len(command) <= 90
                and "<<" not in command
                and "`" not in command
                and not _is_of_a_part(command)
            ):
                working.setdefault(command, []).append(call)
    # The most frequent first.
    usual = sorted(working, key=lambda command: (-len(working[command]), line_of(working[command][0].turn)))
    best = _each_check_once(usual)
    if best:
        lines = tuple(line_of(call.turn) for command in best for call in working[command])[:LINES_KEPT]
        last = working[best[0]][-1].turn
        yield Candidate(
            last, lines, _checks_in(best), "KNOWLEDGE_ACQUIRED", "pattern", "layer1:Bash", "checks",
            "assistant", subject=CHECKS_SUBJECT,
        )  # fmt: skip


def checks_text(newest_first: Iterable[str]) -> str:
    """
    Return what several sessions say of the commands that worked; of each check the way it was run last.

    >>> checks_text(["Commands …: `uv run pytest -q`", "Commands …: `pytest`, `mypy`"])
    'Commands that worked for checks and builds here: `uv run pytest -q`, `mypy`'
    """
    return _checks_in(_each_check_once(name for text in newest_first for name in _QUOTED.findall(text)))


def _checks_in(commands: Iterable[str]) -> str:
    return _CHECKS_LEAD + ", ".join(f"`{command}`" for command in commands)


def _each_check_once(commands: Iterable[str]) -> list[str]:
    """Return the commands that check something those before them do not, as many as are told."""
    kept: list[str] = []
    checked: set[str] = set()
    for command in commands:
        checks = {_check_of(match, command) for match in CHECK_COMMANDS.finditer(command)}
        if not checks <= checked:
            kept.append(command)
            checked |= checks
    return kept[:CHECKS_KEPT]


def _check_of(match: re.Match[str], command: str) -> str:
    follows = _SUBCOMMAND.match(command, match.end())
    return match[0] + (follows[0] if follows else "")


def _is_of_a_part(command: str) -> bool:
    check = CHECK_COMMANDS.search(command)
    return bool(_OF_A_PART.search(_OPTION_VALUE.sub("", command[check.end() if check else 0 :])))


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


# -- Layer 1: commits, pushes and pull requests, read from the commands that made them.

COMMIT = re.compile(r"\bgit (?:-[cC] \S+ )*commit\b")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\s*\1\b", re.DOTALL)
MESSAGE = re.compile(r"""(?:-m|--message)[ =]\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""", re.DOTALL)
COMMITTED = re.compile(r"^\[([^\]\s]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.*)$", re.MULTILINE)
PULL_REQUEST = re.compile(r"https://[\w.-]+/[\w./-]+/(?:pull|merge_requests)/(\d+)")
PUSH = re.compile(r"\bgit (?:-[cC] \S+ )*push\b(?!.*--dry-run)")
MERGED = re.compile(r"\b(?:gh pr|glab mr) merge\b")
PR_CREATE = re.compile(r"\b(?:gh pr|glab mr) create\b")
PR_TITLE = re.compile(r"""--title[ =]\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
TRAILER = re.compile(
    r"^(?:co-authored-by|signed-off-by|assisted-by|generated with|🤖|change-id|entire-"
    r"|confidence:|scope-risk:|tested:|not-tested:)",
    re.IGNORECASE,
)


def git_candidates(turns: Sequence[Turn]) -> Iterator[Candidate]:
    """Yield the commits and pull requests of one thread, as git and the forge confirmed them."""
    for call in calls_that_ran(turns):
        if call.tool not in SHELL_TOOLS or call.failed:
            continue
        done = COMMITTED.search(text_of(call.result)) if COMMIT.search(call.argument) else None
        if done:
            branch, commit, subject = done.groups()
            body = _first_paragraph(commit_message(call.argument))
            text = f"Committed {commit} on {branch}: {subject.rstrip('.')}{f'. {body}' if body else ''}"
            yield _progress(call, text, "commit", commit)
        opened = PULL_REQUEST.search(text_of(call.result)) if PR_CREATE.search(call.argument) else None
        if opened:
            title = PR_TITLE.search(call.argument)
            named = f": {title[1] or title[2]}" if title else ""
            yield _progress(call, f"Opened PR #{opened[1]}{named} ({opened[0]})", "pull_request", None)


def _progress(call: Call, text: str, source: str, commit: str | None) -> Candidate:
    return Candidate(
        call.turn, (line_of(call.turn), line_of(call.result)), cut_between(plain(text), MAX_CHARS),
        "TASK_COMPLETED", "progress", "layer1:git", source, "assistant", git_commit=commit,
    )  # fmt: skip


def _first_paragraph(message: str) -> str:
    """Return what a message says first after its subject, without trailers."""
    lines = [line for line in message.split("\n")[1:] if not TRAILER.match(line.strip())]
    return next((block.text for block in prose_blocks("\n".join(lines))), "")


def commit_message(command: str) -> str:
    """
    Return the message a commit command gives, its parts as paragraphs; empty if it gives none.

    >>> commit_message('git commit -m "Add x" -m "Because y."')
    'Add x\\n\\nBecause y.'
    """
    heredoc = HEREDOC.search(command)
    if heredoc:
        return heredoc[2].strip()
    parts = [double or single for double, single in MESSAGE.findall(command)]
    return "\n\n".join(part.replace('\\"', '"').strip() for part in parts)


# -- Layer 1: a command that failed and later passed: what it printed, and what was changed in between.

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
        failed.result, lines, shortened(text, MAX_CHARS), "ERROR_RESOLVED", "gotcha", "layer1:Bash",
        "mended", "tool", subject=command, files=files,
    )  # fmt: skip


def _error(output: str) -> str:
    """Return the line of an output that says what went wrong, or nothing."""
    telling = TELLING.search(output)
    line = plain(telling[0]) if telling else ""
    return line if len(line) <= ERROR_CHARS else ""  # half an error is none
