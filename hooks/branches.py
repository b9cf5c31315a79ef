"""The branch that a session stands on, from the files of git, and the brief marked for that branch."""

from __future__ import annotations

import json
import os
import stat
import zlib

# Beside the brief: which of its lines were said on which branches, and which branches contain which.
NOTES = "branches.json"
MAX_NOTES_BYTES = 256 * 1024
# HEAD, a ref and a pointer to a worktree's folder have a line each.
_MAX_LINE_BYTES = 4_096
MARK = " [on branch {}, not merged]"
MARK_BEGINS = " [on branch "
HEADS = "ref: refs/heads/"


def followed(brief: str, published: str, folder: str, branch: str = "") -> str:
    """
    Return the brief with the lines marked that hold on another branch than the one `folder` stands on.

    `branch` is taken for that one, if it is given. The brief as it was published, in the folder `published`,
    is marked for the branch that stood at that time; marks that do not hold here go. If the branch, or what
    it contains, is not known, the brief stays as it is.
    """
    notes = _notes(os.path.join(published, NOTES))
    stands = ((branch, "") if branch else branch_of(folder)) if notes.get("lines") else None
    if stands is None:
        return brief
    try:
        return _marked_for(brief, notes, *stands)
    except (AttributeError, LookupError, TypeError, ValueError):  # notes that nobody of us wrote
        return brief


def branch_of(folder: str) -> tuple[str, str] | None:
    """
    Return the branch that `folder` stands on and its commit, each empty if it is not known.

    No git is run. A worktree's `.git` is a file that names its folder; if HEAD is not a branch only the
    commit is known. None if there is no repository, or its HEAD says neither.
    """
    here = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent
    git = os.path.join(here, ".git")
    pointer = _line(git)
    if pointer.startswith("gitdir: "):
        git = os.path.join(here, pointer[len("gitdir: ") :])
    head = _line(os.path.join(git, "HEAD"))
    if not head.startswith(HEADS):
        return ("", head) if head else None
    branch = head[len(HEADS) :]
    shared = os.path.join(git, _line(os.path.join(git, "commondir")) or ".")
    is_plain = branch and ".." not in branch.split("/")
    return (branch, _line(os.path.join(shared, "refs", "heads", branch))) if is_plain else None


def _marked_for(brief: str, notes: dict, branch: str, commit: str) -> str:  # type: ignore[type-arg]
    tips: dict[str, str] = notes["tips"]
    # A branch begun since then holds what the one it began at holds.
    like = branch if branch in tips else next((name for name in sorted(tips) if tips[name] == commit), "")
    if not like:
        return brief
    lines = brief.split("\n")
    for number, checksum, branches, is_marked in notes["lines"]:
        if number < len(lines) and checksum_of(lines[number]) == checksum:
            holds = branch in branches or any(like in notes["within"][name] for name in branches)
            lines[number] = _marked(lines[number], min(branches), is_marked=is_marked, holds=holds)
    return "\n".join(lines)


def checksum_of(line: str) -> int:
    """Return what a line of a brief is known by."""
    return zlib.crc32(line.encode("utf-8", "surrogatepass"))


def _marked(line: str, branch: str, *, is_marked: bool, holds: bool) -> str:
    mark = MARK.format(branch)
    if is_marked and holds:
        return line.replace(mark, "", 1)
    return line if is_marked or holds else line + mark


def _notes(path: str) -> dict:  # type: ignore[type-arg]
    try:
        with open(path, "rb") as file:
            notes = json.loads(file.read(MAX_NOTES_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _line(path: str) -> str:
    """Return the line that a small regular file holds; empty for anything else, and nothing is waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):  # a pointer may hold a NUL
        return ""
    try:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = os.read(descriptor, _MAX_LINE_BYTES) if is_regular else b""
    except OSError:
        content = b""
    finally:
        os.close(descriptor)
    return content.decode("utf-8", "replace").strip()
