"""What the calls of a session left behind: commits, pull requests, pushes, checks and their verdict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.hooks.prose.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.failed_calls import is_red
from cortex.transforms.extract.git import (
    COMMIT,
    COMMITTED,
    MERGED,
    PR_CREATE,
    PULL_REQUEST,
    PUSH,
    commit_message,
)
from cortex.transforms.extract.ground.candidate import Turn, text_of
from cortex.transforms.extract.ground.phrases import CHECK_COMMANDS
from cortex.transforms.extract.ground.statements import plain
from cortex.transforms.extract.structural import Call
from cortex.transforms.words.sentences import shortened

AMEND = re.compile(r"\s--amend\b")
# Serving, installing and formatting prove nothing.
_FORMATS = re.compile(r"\s+(?:format|fmt)\b(?!.*--check)")
NO_PROOF = re.compile(r"(?:\b(?:dev|install|format|fmt|vite|serve|start)[\w:-]*|\bgo run|:fix)$")
# What chooses a part of the checks: a path, a test's name, the value of one of these options.
_PART_ENDS = re.compile(r"[|;&<>\n]|\s\d>")
_CHOOSING = frozenset(("-k", "-m", "-t", "-p", "-run", "--run", "--filter", "--grep", "-g"))
_WHOLE = frozenset((".", "./", "./...", "--"))
_WORDS = re.compile(r"\"[^\"]*\"|'[^']*'|\S+")
_PATH = re.compile(r"/|::|\w\.\w")
CHECK_CHARS = 60
STASH = re.compile(r"\bgit stash\b(?!\s+(?:pop|apply|list|show|drop|clear|branch))")
UNSTASH = re.compile(r"\bgit stash (?:pop|apply|drop|clear|branch)\b")
# What a shell writes into a command in place of a message.
_NO_SUBJECT = re.compile(r"^[\"'$<(]|^\W*$")
SUBJECT_CHARS = 90
SHELL = "Bash"
TYPED_KIND = "shell"
CHECKS_NAMED = 2
_CHANGED_NAMED = 3


@dataclass
class WorkingState:
    """What was done and proved, what is open, and the turns that show it."""

    done: list[str] = field(default_factory=list)
    changed: str = ""  # files that no commit holds, if there is none
    open: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)  # commits before the last, latest first
    turns: list[Turn] = field(default_factory=list)
    commits: list[tuple[str, str]] = field(default_factory=list)  # hash, subject
    has_worked: bool = False  # changed a file, committed or checked something


@dataclass
class _Trail:
    """The calls of a session as far as they leave a state."""

    commits: list[tuple[str, str, Turn]] = field(default_factory=list)  # hash, subject
    pull_requests: list[tuple[str, Turn]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # files that no commit holds yet, in order
    is_merged: bool = False
    is_pushed: bool = True
    is_committed: bool = True
    is_stashed: bool = False
    unseen: tuple[str, Turn] | None = None  # a check that a person ran last: its output is not in the session
    checks: dict[str, tuple[bool, Turn]] = field(default_factory=dict)  # failed, by command; since the edits
    last_check: tuple[str, bool, Turn] | None = None  # command, failed


def working_state(calls: Sequence[Call]) -> WorkingState:
    """Return the state in which the calls of one thread that ran leave its work."""
    trail = _Trail()
    for call in calls:
        _follow(trail, call)
    state = WorkingState(commits=[(name, subject) for name, subject, _ in trail.commits])
    state.has_worked = bool(trail.commits or trail.pull_requests or not trail.is_committed)
    _add_commits(trail, state)
    _add_checks(trail, state)
    if trail.is_stashed:
        state.open.append("changes are stashed")
    return state


def typed_commands(turns: Sequence[Turn]) -> list[Call]:
    """Return the commands that a person ran at the client, whose output is not in the session."""
    return [
        Call(turn, {**turn, "text": ""}, SHELL, failed=False) for turn in turns if turn["kind"] == TYPED_KIND
    ]


def changes_state(call: Call) -> bool:
    """Return whether a call changes what a recap before it says: a file, a commit, what is published."""
    if call.failed:
        return False
    is_command = call.tool in SHELL_TOOLS
    return call.tool in EDIT_TOOLS or (
        is_command and any(sign.search(call.argument) for sign in (COMMIT, PUSH, PR_CREATE, MERGED))
    )


def _add_commits(trail: _Trail, state: WorkingState) -> None:
    if trail.commits:
        names = [f"{subject}{f' ({name})' if name else ''}" for name, subject, _ in trail.commits]
        before = f"{len(names)} commits, the last: " if len(names) > 1 else "Committed: "
        state.done.append(f"{before}{names[-1]}")
        state.earlier = names[-2::-1]
        state.turns += [turn for _, _, turn in trail.commits]
    for number, turn in trail.pull_requests[-1:]:
        state.done.append(f"PR{f' #{number}' * bool(number)} {'merged' if trail.is_merged else 'opened'}")
        state.turns.append(turn)
    # Whether these are committed is not said: most are committed soon after, unseen by any session.
    names = list(dict.fromkeys(reversed(trail.changed)))
    if names and not trail.commits:
        more = f" and {len(names) - _CHANGED_NAMED} more" if len(names) > _CHANGED_NAMED else ""
        state.changed = f"changed {', '.join(names[:_CHANGED_NAMED])}{more}"
    if trail.commits and not trail.is_pushed:
        state.open.append("not pushed")


def _add_checks(trail: _Trail, state: WorkingState) -> None:
    """Say of the checks since the last edit whether they passed, and of the last one of all if it failed."""
    red = [command for command, (failed, _) in trail.checks.items() if failed]
    green = [command for command, (failed, _) in trail.checks.items() if not failed][-CHECKS_NAMED:]
    if green:
        named = " and ".join(f"`{command}`" for command in green)
        state.done.append(f"{named} {'passes' if len(green) == 1 else 'pass'}")
        state.turns += [trail.checks[command][1] for command in green]
    failed_last = [(red[-1], trail.checks[red[-1]][1])] if red else []
    if not trail.checks and trail.last_check is not None and trail.last_check[1]:
        failed_last = [(trail.last_check[0], trail.last_check[2])]
    if trail.unseen is not None:
        state.open.append(f"`{trail.unseen[0]}` was run last by the user, its result not seen")
        state.turns.append(trail.unseen[1])
    for command, turn in failed_last:
        state.open.append(f"`{command}` failed when it last ran")
        state.turns.append(turn)


def _follow(trail: _Trail, call: Call) -> None:
    if call.tool in EDIT_TOOLS and not call.failed:
        trail.is_committed = False
        trail.changed.append(call.argument.replace("\\", "/").rsplit("/", 1)[-1])
        trail.checks.clear()
        trail.unseen = None
        return
    if call.tool not in SHELL_TOOLS:
        return
    for check in CHECK_COMMANDS.finditer(call.argument):
        if not NO_PROOF.search(check[0]) and not _FORMATS.match(call.argument, check.end()):
            _check(trail, call, _with_part(check, call.argument))
    if call.failed:
        return
    _stash(trail, call)
    if COMMIT.search(call.argument):
        _commit(trail, call)
    if PUSH.search(call.argument):
        trail.is_pushed = True
    opened = PULL_REQUEST.search(text_of(call.result))
    if PR_CREATE.search(call.argument) and (opened or call.turn["kind"] == TYPED_KIND):
        trail.pull_requests.append((opened[1] if opened else "", call.result))
        trail.is_merged, trail.is_pushed = False, True
    trail.is_merged = trail.is_merged or bool(MERGED.search(call.argument))


def _check(trail: _Trail, call: Call, command: str) -> None:
    trail.checks.pop(command, None)
    if call.turn["kind"] == TYPED_KIND:
        trail.unseen = (command, call.turn)
        return
    trail.unseen = None
    trail.checks[command] = (is_red(call), call.result)
    trail.last_check = (command, *trail.checks[command])


def _with_part(check: re.Match[str], command: str) -> str:
    """
    Return the name of a check with what chose a part of it: a pass of that part says nothing of the rest.

    >>> command = "uv run pytest -q tests/test_tide.py 2>&1 | tail"
    >>> _with_part(CHECK_COMMANDS.search(command), command)
    'pytest tests/test_tide.py'
    """
    rest = [word.strip("()") for word in _WORDS.findall(_PART_ENDS.split(command[check.end() :])[0])]
    parts: list[str] = []
    for before, word in zip(["", *rest], rest, strict=False):
        is_path = not word.startswith("-") and _PATH.search(word) and word not in _WHOLE
        if is_path or word in _CHOOSING or before in _CHOOSING:
            parts.append(word)
    named = " ".join([check[0], *parts])
    if len(named) > CHECK_CHARS:
        ends = (part.rstrip("/").rsplit("/", 1)[-1].rsplit("::")[-1] for part in parts)
        named = " ".join([check[0], *ends])
    return named if len(named) <= CHECK_CHARS else f"{check[0]} …"


def _stash(trail: _Trail, call: Call) -> None:
    for command in _PART_ENDS.split(call.argument):
        if UNSTASH.search(command):
            trail.is_stashed = False
        elif STASH.search(command):
            trail.is_stashed = True


def _commit(trail: _Trail, call: Call) -> None:
    message = plain(commit_message(call.argument).split("\n", 1)[0])
    commits = [(name, plain(subject)) for _, name, subject in COMMITTED.findall(text_of(call.result))]
    if not commits and not _NO_SUBJECT.search(message):
        commits = [("", message)]
    if AMEND.search(call.argument) and commits and trail.commits:
        trail.commits.pop()
    for name, subject in commits:
        trail.commits.append((name, shortened(subject.rstrip("."), SUBJECT_CHARS), call.result))
    if commits:
        trail.is_committed, trail.is_pushed = True, False
        trail.changed.clear()
