"""Asking a project's git repository, in one pass and without running anything of it, what it holds now."""

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from cortex.transforms.reality import Questions, Snapshot, Tree

GIT_TIMEOUT_SECONDS = 20
# Commits looked at beside HEAD, newest first: a search of one took 30 ms in a repository of 2,000 files.
TREES_MOST = 40
# History older than this is left: `log` gives some 20,000 commits a second.
COMMITS_MOST = 20_000
MANIFESTS = (
    "pyproject.toml", "requirements*.txt", "setup.py", "setup.cfg", "Pipfile", "package.json", "go.mod",
    "Cargo.toml", "Gemfile", "composer.json", "pom.xml", "build.gradle*",
)  # fmt: skip
# What a repository's own configuration could start: its hooks and its file system monitor.
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_WORD = re.compile(r"[A-Za-z][\w.@+-]*")


def repository_at(paths: Iterable[str]) -> str | None:
    """Return the first of `paths` that is a folder of a git repository with a commit on this machine."""
    return next((path for path in paths if Path(path).is_dir() and _git(path, "rev-parse", "HEAD")), None)


def state_of(place: str) -> str:
    """Return what changes whenever an answer of `snapshot_of` might: HEAD, its branch and all branches."""
    return _git(place, "for-each-ref", "--format=%(refname)%(objectname)", "refs/heads") + _git(
        place, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"
    )


def snapshot_of(place: str, asked: Questions) -> Snapshot:
    """
    Return what the repository at `place` says to the questions.

    Reads commits, not the working tree; a git that fails or takes too long gives empty answers, which doubt
    nothing.
    """
    head = _git(place, "rev-parse", "HEAD")
    files = frozenset(_git(place, "ls-tree", "-r", "--name-only", "--full-tree", "HEAD").splitlines())
    now = _tree(place, "HEAD", asked, asked.symbols)
    missing = asked.symbols - now.symbols
    commits = _commits_until(place, asked.instants)
    newest = sorted(set(commits.values()), key=lambda commit: -commit[0])[:TREES_MOST]
    trees = {name: _tree(place, name, asked, missing) for _, name in newest}
    return Snapshot(
        head=head,
        branch=_git(place, "rev-parse", "--abbrev-ref", "HEAD"),
        files=files,
        deleted=_deleted(place) - files,
        unmerged_branches=_unmerged(place),
        now=now,
        then={at: trees[name] for at, (_, name) in commits.items() if name in trees},
    )


def _tree(place: str, commit: str, asked: Questions, symbols: frozenset[str]) -> Tree:
    return Tree(
        _present(place, commit, symbols),
        asked.dependencies & _declared(place, commit) if asked.dependencies else frozenset(),
    )


def _present(place: str, commit: str, symbols: frozenset[str]) -> frozenset[str]:
    """Return which of the names stand as a word in a file of the commit; of `a.b` the last part counts."""
    by_part: dict[str, set[str]] = {}
    for name in symbols:
        by_part.setdefault(re.split(r"[.:]", name)[-1], set()).add(name)
    if not by_part:
        return frozenset()
    patterns = "\n".join(sorted(by_part))
    found = set(_git(place, "grep", "-I", "-h", "-o", "-w", "-F", "-f", "-", commit, given=patterns).split())
    return frozenset(name for part in found & by_part.keys() for name in by_part[part])


def _declared(place: str, commit: str) -> frozenset[str]:
    """Return the words of the commit's dependency manifests, lower case."""
    globs = [f":(glob)**/{name}" for name in MANIFESTS]
    text = _git(place, "grep", "-I", "-h", "-e", "", commit, "--", *globs)
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


def _unmerged(place: str) -> frozenset[str]:
    names = _git(place, "for-each-ref", "--no-merged=HEAD", "--format=%(refname:short)", "refs/heads")
    return frozenset(names.splitlines())


def _git(place: str, *arguments: str, given: str = "") -> str:
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
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
