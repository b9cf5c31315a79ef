"""
Who does a task, and whether what came of it is right: agents and recorded answers, graded by hidden tests.

An agent works in a folder that holds the project's files and nothing else. It is graded in another one: what
it changed is read as text, without following a link, laid out again with the hidden tests, and run in a
process with a time limit and nothing of the person's environment.
"""

import difflib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from cortex.scores.benefit_runs import lay_out
from cortex.scores.benefit_tasks import MAX_CHARS, MAX_FILES, Task, TaskSet, safe_path
from cortex.storage.machine.client_program import find_client
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.writer.request import used_tokens

AGENT_SECONDS, TEST_SECONDS = 600, 60
CLAUDE = "claude"
# Edits of files in its folder, and nothing else without asking; nothing that the person keeps for it.
CLAUDE_ARGUMENTS = (
    *("-p", "--output-format", "json", "--permission-mode", "acceptEdits", "--setting-sources", ""),
    *("--strict-mcp-config", "--no-session-persistence"),
)
CLAUDE_VARIABLES = {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}
# What would be billed to a key instead of the person's own login; it is never taken from the environment.
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
# Left by running the code, not by changing it.
_LEFT_BY_RUNNING = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".git", ".claude")
_PYTHONS = ("python", "python3")

# How an answer without tools gives files: each whole, behind a line with its path.
_FILE = re.compile(r"(?m)^=== (\S+)[ \t]*\n")
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Done:
    """What an agent left: its answer and the files that differ; None where it gave none of its figures."""

    answer: str
    changed: Mapping[str, str | None]
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True)
class Grade:
    """How right a task was done: shares of 0 to 1, halves where two judges differ; `why` for a person."""

    right: float
    wrong: float
    misled: float
    met: float | None = None
    why: str = ""


class Agent:
    """A command that gets the prompt on stdin and the project's folder as its working directory."""

    def __init__(self, command: str) -> None:
        if command == CLAUDE:
            client = find_client()
            if client is None:
                raise NotFound("there is no `claude` on the PATH.", "Install Claude Code, or name a command.")
            self._words = [str(client), *CLAUDE_ARGUMENTS]
        else:
            self._words = shlex.split(command)
            # A path is meant from where the person stands, not from the folder that the agent works in.
            program = shutil.which(self._words[0]) if self._words else None
            if program is None:
                raise NotFound(f"there is no command '{command}'.", "Name `claude` or a command.")
            self._words[0] = str(Path(program).absolute())
        self._is_claude = command == CLAUDE

    def do(self, folder: Path, files: Mapping[str, str], prompt: str) -> Done:
        """Let the agent work in a folder laid out for it. Raises UsageError where it cannot be started."""
        lay_out(folder, files)
        variables = {**os.environ, "CORTEX_INTERNAL": "1"}
        if self._is_claude:
            variables = {name: value for name, value in variables.items() if name not in _KEYS}
            variables |= CLAUDE_VARIABLES
        try:
            output, _ = run_limited(self._words, folder, variables, AGENT_SECONDS, prompt)
        except OSError as error:
            problem = f"the agent cannot be started: {error.strerror}."
            raise UsageError(problem, "Check the command of --agent.") from error
        result = _claude_result(output) if self._is_claude else {}
        tokens_in, tokens_out = used_tokens(result["usage"]) if result.get("usage") else (None, None)
        usd = result.get("total_cost_usd")
        return Done(
            str(result.get("result", output)), changes(folder, files), tokens_in, tokens_out,
            float(usd) if isinstance(usd, int | float) else None,
        )  # fmt: skip


def _claude_result(output: str) -> Mapping[str, Any]:
    try:
        result = json.loads(output)
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def run_limited(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: float, stdin: str = ""
) -> tuple[str, int]:
    """Run a command and end it and its children after `seconds`; return output and exit code, -1 if ended."""
    process = subprocess.Popen(
        command, cwd=folder, env=dict(variables), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(stdin, timeout=seconds)
        return output, process.returncode
    except subprocess.TimeoutExpired:
        return f"ended after {seconds:.0f} s", -1
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)


def changes(folder: Path, files: Mapping[str, str]) -> dict[str, str | None]:
    """Return the files of a folder that differ from `files`; None where one is gone or cannot be read."""
    changed: dict[str, str | None] = {name: None for name in files}
    room = MAX_CHARS
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(part in _LEFT_BY_RUNNING for part in path.relative_to(folder).parts):
            continue
        if path.is_symlink() or not path.is_file():
            if not path.is_dir() or path.is_symlink():
                changed[name] = None  # a link or a device: never followed, and no file of an answer
            continue
        size = path.stat().st_size
        room -= size
        text = path.read_bytes().decode(errors="replace") if room >= 0 else None
        changed[name] = text
        if text is not None and files.get(name) == text:
            del changed[name]
    return changed


def files_in_answer(answer: str, files: Mapping[str, str]) -> dict[str, str | None]:
    """
    Return the files that an answer gives whole, each behind a line `=== path`.

    >>> files_in_answer("Sure.\\n=== a.py\\nx = 1\\n===\\nDone.", {})
    {'a.py': 'x = 1\\n'}
    """
    parts = _FILE.split(answer)
    given = {}
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        text = re.split(r"(?m)^===[ \t]*$", text)[0]
        fenced = _FENCE.match(text)
        given[name] = (fenced[1] if fenced else text).strip("\n") + "\n"
    return {name: text for name, text in given.items() if files.get(name) != text}


def graded_by_tests(tasks: TaskSet, task: Task, changed: Mapping[str, str | None]) -> Grade:
    """Return whether the hidden tests pass, nothing else was changed and the patch is as asked."""
    patch = _patch(tasks.files, changed)
    is_misled = any(re2.search(f"(?m){pattern}", patch) for pattern in task.forbidden_patterns)
    why = _why_refused(task, changed, patch) or _why_failed(tasks, task, changed)
    if is_misled:
        why = why or "the patch holds what it must not"
    return Grade(float(not why), float(bool(why)), float(is_misled), why=why)


def _why_refused(task: Task, changed: Mapping[str, str | None], patch: str) -> str:
    for name in changed:
        if not safe_path(name) or not _is_below(name, task.allowed or (name,)):
            return f"{name} may not be changed"
        if _is_below(name, task.forbidden):
            return f"{name} must not be changed"
    if len(changed) > MAX_FILES:
        return "too many files were changed"
    missing = [each for each in task.required_patterns if not re2.search(f"(?m){each}", patch)]
    return f"the patch lacks {missing[0]}" if missing else ""


def _is_below(name: str, folders: Sequence[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)


def _patch(files: Mapping[str, str], changed: Mapping[str, str | None]) -> str:
    texts = ((files.get(name, ""), text or "", name) for name, text in sorted(changed.items()))
    return "".join(
        line if line.endswith("\n") else line + "\n"
        for before, after, name in texts
        for line in difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, name)
    )


def _why_failed(tasks: TaskSet, task: Task, changed: Mapping[str, str | None]) -> str:
    texts = {**tasks.files, **changed, **task.hidden}
    with tempfile.TemporaryDirectory(prefix="cortex-benefit-") as scratch:
        folder = Path(scratch, "project")
        lay_out(folder, {name: text for name, text in texts.items() if text is not None})
        variables = {"HOME": scratch, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}
        until = time.monotonic() + TEST_SECONDS
        for command in task.commands:
            words = [sys.executable if command[0] in _PYTHONS else command[0], *command[1:]]
            try:
                output, code = run_limited(words, folder, variables, max(1.0, until - time.monotonic()))
            except OSError as error:
                return f"{command[0]} cannot be started: {error.strerror}"
            if code:
                return f"{shlex.join(command)}: {' '.join(output.split())[-200:]}"
    return ""


def recorded_answers(values: Sequence[str]) -> dict[str, dict[str, str]]:
    """
    Return recorded answers by condition and task: of `CONDITION=FILE` {task: text}, of `FILE` one level more.

    Raises NotFound and UsageError.
    """
    answers: dict[str, dict[str, str]] = {}
    for value in values:
        condition, separator, path = value.partition("=")
        rows = read_object(Path(path if separator else value))
        for name, each in {condition: rows}.items() if separator else rows.items():
            if not isinstance(each, dict) or not all(isinstance(text, str) for text in each.values()):
                raise UsageError(f"{path or value}: '{name}' must be an object of texts by task.", _ANSWERS)
            answers.setdefault(name, {}).update(each)
    return answers


_ANSWERS = "Answers are {task: text} as `CONDITION=FILE`, or {condition: {task: text}} as `FILE`."


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises NotFound and UsageError."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise NotFound(f"the file {path} is missing.", "Name a file with a JSON object.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}.", "Name a file with a JSON object.") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} holds no JSON object.", "Name a file with a JSON object.")
    return value


def answered(tasks: TaskSet, answer: str) -> Done:
    """Return a recorded answer as an agent's work: the files that it gives."""
    return Done(answer, files_in_answer(answer, tasks.files))
