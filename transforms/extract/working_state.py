"""What the calls of a session left behind: commits, pull requests, pushes, checks and their verdict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.hooks.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.candidate import Turn, text_of
from cortex.transforms.extract.errors import is_red
from cortex.transforms.extract.git import COMMIT, COMMITTED, PR_CREATE, PULL_REQUEST, commit_message
from cortex.transforms.extract.phrases import CHECK_COMMANDS
from cortex.transforms.extract.sentences import plain
from cortex.transforms.extract.structural import Call, shown_command
from cortex.transforms.words.sentences import shortened

PUSH = re.compile(r"\bgit (?:-[cC] \S+ )*push\b(?!.*--dry-run)")
AMEND = re.compile(r"\s--amend\b")
SUBJECT_CHARS = 80
CHECK_CHARS = 50


@dataclass
class WorkingState:
    """What was done and proved, what is open, and the turns that show it."""

    done: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    has_worked: bool = False  # changed a file, committed or checked something


@dataclass
class _Trail:
    """The calls of a session as far as they leave a state: positions are those of the calls."""

    commits: list[tuple[str, str, Turn]] = field(default_factory=list)  # hash, subject
    pull_request: tuple[str, Turn] | None = None
    has_pushed: bool = False
    is_pushed: bool = True
    is_committed: bool = True
    check: tuple[str, bool, Turn] | None = None  # command, failed
    is_checked: bool = True


def working_state(turns: Sequence[Turn], calls: Sequence[Call]) -> WorkingState:
    """Return the state in which one thread leaves its work; `calls` are those of `turns` that ran."""
    trail = _Trail()
    for call in calls:
        _follow(trail, call)
    state = WorkingState()
    state.has_worked = bool(trail.commits or trail.pull_request or trail.check or not trail.is_committed)
    _commits(trail, state)
    if trail.check is not None:
        command, has_failed, turn = trail.check
        if has_failed:
            state.open.append(f"`{command}` failed when it last ran")
            state.turns.append(turn)
        elif trail.is_checked:
            state.done.append(f"`{command}` passes")
            state.turns.append(turn)
    return state


def _commits(trail: _Trail, state: WorkingState) -> None:
    if trail.commits:
        name, subject, _ = trail.commits[-1]
        count = len(trail.commits)
        before = f"{count} commits, the last: " if count > 1 else "Committed: "
        state.done.append(f"{before}{subject}{f' ({name})' if name else ''}")
        state.turns += [turn for _, _, turn in trail.commits]
    if trail.pull_request is not None:
        state.done.append(f"PR #{trail.pull_request[0]} opened")
        state.turns.append(trail.pull_request[1])
    if trail.commits and not trail.is_committed:
        state.open.append("later edits are not committed")
    if trail.commits and not trail.is_pushed:
        state.open.append("not pushed")


def _follow(trail: _Trail, call: Call) -> None:
    if call.tool in EDIT_TOOLS and not call.failed:
        trail.is_committed, trail.is_checked = False, False
        return
    if call.tool not in SHELL_TOOLS:
        return
    command = call.argument
    if CHECK_COMMANDS.search(command):
        trail.check = (shortened(shown_command(command), CHECK_CHARS), is_red(call), call.result)
        trail.is_checked = True
    if call.failed:
        return
    if COMMIT.search(command):
        _commit(trail, call)
    if PUSH.search(command):
        trail.has_pushed = trail.is_pushed = True
    if PR_CREATE.search(command) and (opened := PULL_REQUEST.search(text_of(call.result))):
        trail.pull_request = (opened[1], call.result)


def _commit(trail: _Trail, call: Call) -> None:
    commits = COMMITTED.findall(text_of(call.result))
    message = plain(commit_message(call.argument).split("\n", 1)[0])
    if not commits and not message:
        return
    if AMEND.search(call.argument) and trail.commits:
        trail.commits.pop()
    for _, name, subject in commits or [("", "", message)]:
        trail.commits.append((name, shortened(plain(subject), SUBJECT_CHARS), call.result))
    trail.is_committed, trail.is_pushed = True, False
