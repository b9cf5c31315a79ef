"""What the calls of a session left behind: commits, pull requests, pushes, checks and their verdict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cortex.hooks.sources import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.candidate import Turn, text_of
from cortex.transforms.extract.errors import is_red
from cortex.transforms.extract.git import (
    COMMIT,
    COMMITTED,
    MERGED,
    PR_CREATE,
    PULL_REQUEST,
    PUSH,
    commit_message,
)
from cortex.transforms.extract.phrases import CHECK_COMMANDS
from cortex.transforms.extract.sentences import plain
from cortex.transforms.extract.structural import Call
from cortex.transforms.words.sentences import shortened

AMEND = re.compile(r"\s--amend\b")
# Serving, installing and formatting prove nothing.
NO_PROOF = re.compile(r"(?:\b(?:dev|install|format|fmt|vite|serve|start)[\w:-]*|\bgo run|:fix)$")
# What a shell writes into a command in place of a message.
_NO_SUBJECT = re.compile(r"^[\"'$<(]|^\W*$")
SUBJECT_CHARS = 90
CHECKS_NAMED = 2


@dataclass
class WorkingState:
    """What was done and proved, what is open, and the turns that show it."""

    done: list[str] = field(default_factory=list)
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
    is_merged: bool = False
    is_pushed: bool = True
    is_committed: bool = True
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
    return state


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
        state.done.append(f"PR #{number} {'merged' if trail.is_merged else 'opened'}")
        state.turns.append(turn)
    if trail.commits and not trail.is_committed:
        state.open.append("later edits are not committed")
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
    for command, turn in failed_last:
        state.open.append(f"`{command}` failed when it last ran")
        state.turns.append(turn)


def _follow(trail: _Trail, call: Call) -> None:
    if call.tool in EDIT_TOOLS and not call.failed:
        trail.is_committed = False
        trail.checks.clear()
        return
    if call.tool not in SHELL_TOOLS:
        return
    for check in CHECK_COMMANDS.finditer(call.argument):
        if not NO_PROOF.search(check[0]):
            trail.checks.pop(check[0], None)
            trail.checks[check[0]] = (is_red(call), call.result)
            trail.last_check = (check[0], *trail.checks[check[0]])
    if call.failed:
        return
    if COMMIT.search(call.argument):
        _commit(trail, call)
    if PUSH.search(call.argument):
        trail.is_pushed = True
    if PR_CREATE.search(call.argument) and (opened := PULL_REQUEST.search(text_of(call.result))):
        trail.pull_requests.append((opened[1], call.result))
        trail.is_merged = False
    trail.is_merged = trail.is_merged or bool(MERGED.search(call.argument))


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
