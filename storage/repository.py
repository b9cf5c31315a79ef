"""Asking a project's git repository, in one pass and without running anything of it, what it holds now."""

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from cortex.transforms.policy import Policy
from cortex.transforms.reality import Doubt, Edit, Questions, Snapshot, Tree, doubts, questions

CHECKED_COLUMNS = ("memory_id", "memory_type", "text", "status", "updated_at", "evidence")
GIT_TIMEOUT_SECONDS = 20
# Commits looked at beside HEAD, newest first: a search of one took 30 ms in a repository of 2,000 files.
TREES_MOST = 40
# History older than this is left: `log` gives some 20,000 commits a second.
COMMITS_MOST = 20_000
# Words that `git grep` looks for in one go: 100 take 0.1 s over 300 files, 1,600 took five minutes.
PATTERNS_AT_ONCE = 100
MANIFESTS = (
    "pyproject.toml", "requirements*.txt", "setup.py", "setup.cfg", "Pipfile", "package.json", "go.mod",
    "Cargo.toml", "Gemfile", "composer.json", "pom.xml", "build.gradle*",
)  # fmt: skip
# What a repository's own configuration could start: its hooks and its file system monitor.
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_WORD = re.compile(r"[A-Za-z][\w.@+-]*")


class GitFailed(Exception):
    """Git is missing, refused, or took too long; never leaves this module."""


def repository_at(paths: Iterable[str]) -> str | None:
    """Return the first of `paths` that is a folder of a git repository with a commit on this machine."""
    return next((path for path in paths if Path(path).is_dir() and _git(path, "rev-parse", "HEAD")), None)


def doubts_of(paths: Iterable[str], memories: pa.Table, policy: Policy) -> list[Doubt]:
    """
    Return why the repository at one of `paths` no longer agrees with MEMORIES of its project.

    A project whose folder is not on this machine is not doubted.
    """
    place = repository_at(paths)
    if place is None:
        return []
    rows = memories.select([*CHECKED_COLUMNS]).to_pylist()
    snapshot = snapshot_of(place, questions(rows, policy))
    return doubts(rows, snapshot, policy) if snapshot else []


def state_of(paths: Iterable[str]) -> str:
    """Return what changes whenever `doubts_of` might: HEAD, its branch, all branches; empty for none."""
    place = repository_at(paths)
    if place is None:
        return ""
    return _git(place, "for-each-ref", "--format=%(refname)%(objectname)", "refs/heads") + _git(
        place, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"
    )


def snapshot_of(place: str, asked: Questions) -> Snapshot | None:
    """
    Return what the repository at `place` says to the questions; None if git fails or takes too long.

    Reads commits, not the working tree. What is not known of an earlier commit doubts nothing.
    """
    head = _git(place, "rev-parse", "HEAD")
    try:
        listed = _answer(place, "ls-tree", "-r", "--name-only", "--full-tree", "HEAD")
        now = _tree(place, "HEAD", asked, asked.symbols)
    except GitFailed:
        return None
    files = frozenset(listed.splitlines())
    missing = asked.symbols - now.symbols
    commits = _commits_until(place, asked.instants)
    newest = sorted(set(commits.values()), key=lambda commit: -commit[0])[:TREES_MOST]
    trees = {name: _tree_or_nothing(place, name, asked, missing) for _, name in newest}
    return Snapshot(
        head=head,
        branch=_git(place, "rev-parse", "--abbrev-ref", "HEAD"),
        files=files,
        deleted=_deleted(place) - files,
        unmerged_branches=_unmerged(place),
        now=now,
        then={at: trees[name] for at, (_, name) in commits.items() if name in trees},
        edits=_edits(place, _meant(files, asked.described)),
    )


def commits_since(paths: Iterable[str], at: datetime) -> tuple[int, str]:
    """Return how many commits HEAD has from after an instant, and HEAD's short id; (0, "") for none."""
    place = repository_at(paths)
    if place is None:
        return 0, ""
    count = _git(place, "rev-list", "--count", f"--since={int(at.timestamp()) + 1}", "HEAD")
    return int(count or 0), _git(place, "rev-parse", "--short=7", "HEAD")


def _tree(place: str, commit: str, asked: Questions, symbols: frozenset[str]) -> Tree:
    return Tree(
        _present(place, commit, symbols),
        asked.dependencies & _declared(place, commit) if asked.dependencies else frozenset(),
    )


def _tree_or_nothing(place: str, commit: str, asked: Questions, symbols: frozenset[str]) -> Tree:
    try:
        return _tree(place, commit, asked, symbols)
    except GitFailed:
        return Tree()


def _present(place: str, commit: str, symbols: frozenset[str]) -> frozenset[str]:
    """Return which of the names stand as a word in a file of the commit; of `a.b` the last part counts."""
    by_part: dict[str, set[str]] = {}
    for name in symbols:
        by_part.setdefault(re.split(r"[.:]", name)[-1], set()).add(name)
    if not by_part:
        return frozenset()
    parts, found = sorted(by_part), set[str]()
    for start in range(0, len(parts), PATTERNS_AT_ONCE):
        given = "\n".join(parts[start : start + PATTERNS_AT_ONCE])
        found |= set(
            _answer(place, "grep", "-I", "-h", "-o", "-w", "-F", "-f", "-", commit, given=given).split()
        )
    return frozenset(name for part in sorted(found & by_part.keys()) for name in by_part[part])


def _declared(place: str, commit: str) -> frozenset[str]:
    """Return the words of the commit's dependency manifests, lower case."""
    globs = [f":(glob)**/{name}" for name in MANIFESTS]
    text = _answer(place, "grep", "-I", "-h", "-e", "", commit, "--", *globs)
    return frozenset(word.lower().rstrip(".-") for word in _WORD.findall(text))


def _commits_until(place: str, instants: Iterable[datetime]) -> dict[datetime, tuple[int, str]]:
    """Return the last commit of HEAD's history until each instant, as (seconds, id)."""
    told = _git(place, "log", f"-n{COMMITS_MOST}", "--format=%ct %H", "HEAD").splitlines()
    history = sorted((int(seconds), name) for seconds, name in (line.split() for line in told))
    times = [seconds for seconds, _ in history]
    places = {at: bisect_right(times, at.timestamp()) for at in instants}
    return {at: history[position - 1] for at, position in places.items() if position}


def _deleted(place: str) -> frozenset[str]:
    told = _git(
        place, "log", f"-n{COMMITS_MOST}", "--diff-filter=DR", "--name-status", "--format=", "-M", "HEAD"
    )
    return frozenset(line.split("\t")[1] for line in told.splitlines() if line.count("\t"))


def _meant(files: frozenset[str], named: frozenset[str]) -> list[str]:
    """Return the files that are named by themselves or by their end, where only one has it."""
    ends: dict[str, set[str]] = {}
    for path in files:
        parts = path.split("/")
        for start in range(len(parts)):
            ends.setdefault("/".join(parts[start:]), set()).add(path)
    found = (ends.get(name.lstrip("./"), set()) for name in named)
    return sorted({path for paths in found if len(paths) == 1 for path in paths})


def _edits(place: str, paths: list[str]) -> dict[str, tuple[Edit, ...]]:
    """Return by path what each commit did to it, newest first, in one walk over the history."""
    if not paths:
        return {}
    options = ("--no-renames", "--numstat", "--format=@%ct")
    told = _git(place, "log", f"-n{COMMITS_MOST}", *options, "HEAD", "--", *paths)
    found: dict[str, list[Edit]] = {}
    at = datetime.fromtimestamp(0, UTC)
    for line in told.splitlines():
        if line.startswith("@"):
            at = datetime.fromtimestamp(int(line[1:]), UTC)
        elif line.count("\t") == 2:
            added, removed, path = line.split("\t")
            if added != "-":  # of a binary file git counts no lines
                found.setdefault(path, []).append(Edit(at, int(added), int(removed)))
    return {path: tuple(edits) for path, edits in found.items()}


def _unmerged(place: str) -> frozenset[str]:
    names = _git(place, "for-each-ref", "--no-merged=HEAD", "--format=%(refname:short)", "refs/heads")
    return frozenset(names.splitlines())


def _git(place: str, *arguments: str) -> str:
    """Return git's answer, empty if it fails."""
    try:
        return _answer(place, *arguments)
    except GitFailed:
        return ""


def _answer(place: str, *arguments: str, given: str = "") -> str:
    """Return git's answer; a search that finds nothing is one. Raises GitFailed."""
    try:
        answer = subprocess.run(
            ["git", "-C", place, *_SAFE, *arguments],
            input=given,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed from error
    found_nothing = arguments[0] == "grep" and answer.returncode == 1
    if answer.returncode and not found_nothing:
        raise GitFailed
    return answer.stdout.strip()
