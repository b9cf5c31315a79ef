"""What a project's git repository holds now, asked in one pass."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from cortex.storage.filesystem.git import GitFailed, ask, lines_in, repository_at
from cortex.storage.filesystem.git import answer_of as _git
from cortex.transforms.brief.explanation import BranchTips
from cortex.transforms.memory.reality import (
    CommitEdit,
    Doubt,
    Paths,
    Questions,
    Snapshot,
    Tree,
    doubts,
    questions,
)
from cortex.transforms.policy import Policy
from cortex.transforms.vocabulary import Row

if TYPE_CHECKING:
    import pyarrow as pa

CHECKED_COLUMNS = ("memory_id", "memory_type", "text", "rejected", "status", "updated_at", "evidence")
# Commits looked at besides HEAD, newest first: a search of one took 30 ms in a repository of 2,000 files.
TREES_MOST = 40
# Older history is not read: `log` gives about 20,000 commits a second.
COMMITS_MOST = 20_000
# Words that `git grep` looks for in one go: 100 take 0.1 s over 300 files, 1,600 took five minutes.
PATTERNS_AT_ONCE = 100
# Branches told to the hook, newest first; each of those that a brief speaks of costs one question more.
BRANCHES_MOST = 200
TRUNKS = ("main", "master", "trunk", "develop")
MANIFESTS = (
    "pyproject.toml", "requirements*.txt", "setup.py", "setup.cfg", "Pipfile", "package.json", "go.mod",
    "Cargo.toml", "Gemfile", "composer.json", "pom.xml", "build.gradle*",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z][\w.@+-]*")
_REVERT_HEAD = re.compile(r"@([0-9a-f]{40,64}) (\d+)")
_REVERTED = re.compile(r"^This reverts commit ([0-9a-f]{7,64})")
# The last second that a datetime can hold: a commit says any time that its author likes.
_LAST_SECOND = int(datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp())
_LEFT_BRANCH = re.compile(r"checkout: moving from (\S+) to \S+")


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


def snapshot_of(place: str, asked: Questions) -> Snapshot | None:
    """
    Return what the repository at `place` says to the questions; None if git fails or takes too long.

    Reads commits, not the working tree. What is not known of an earlier commit doubts nothing.
    """
    head = _git(place, "rev-parse", "HEAD")
    try:
        listed = ask(place, "ls-tree", "-r", "--name-only", "--full-tree", "HEAD")
        now = _tree(place, "HEAD", asked, asked.symbols)
    except GitFailed:
        return None
    files = frozenset(lines_in(listed))
    missing = asked.symbols - now.symbols
    commits = _commits_until(place, asked.instants)
    newest = sorted(set(commits.values()), key=lambda commit: -commit[0])[:TREES_MOST]
    trees = {name: _tree_or_nothing(place, name, asked, missing) for _, name in newest}
    return Snapshot(
        head=head,
        head_at=_committed_at(place),
        branch=_git(place, "rev-parse", "--abbrev-ref", "HEAD"),
        files=files,
        deleted=_deleted(place) - files,
        unmerged_branches=_unmerged(place),
        now=now,
        then={at: trees[name] for at, (_, name) in commits.items() if name in trees},
        edits=_edits(place, _meant(files, asked.described)),
        gone_branches=_gone_unmerged(place, asked.branches),
    )


def commits_since(paths: Iterable[str], at: datetime) -> tuple[int, str]:
    """Return how many commits HEAD has from after an instant, and HEAD's short id; (0, "") for none."""
    place = repository_at(paths)
    if place is None:
        return 0, ""
    count = _git(place, "rev-list", "--count", f"--since={int(at.timestamp()) + 1}", "HEAD")
    return int(count or 0), _git(place, "rev-parse", "--short=7", "HEAD")


def subjects_since(paths: Iterable[str], at: datetime, most: int) -> list[tuple[str, datetime, str]]:
    """Return the newest commits of HEAD from after an instant: short id, when, subject; none without one."""
    place = repository_at(paths)
    if place is None:
        return []
    options = (f"-n{most}", f"--since={int(at.timestamp()) + 1}", "--format=%h %ct %s")
    lines = (line.split(" ", 2) for line in lines_in(_git(place, "log", *options, "HEAD")))
    return [(line[0], _instant(line[1]), line[2]) for line in lines if len(line) == 3]


def reverts_in(paths: Iterable[str]) -> list[Row]:
    """Return rows of REVERTS: the commits of HEAD's history that say which one they revert."""
    place = repository_at(paths)
    options = (f"-n{COMMITS_MOST}", "--grep=This reverts commit", "--format=@%H %ct%n%b")
    rows: list[Row] = []
    commit, at = "", _instant("0")
    for line in lines_in(_git(place, "log", *options, "HEAD")) if place else ():
        if head := _REVERT_HEAD.fullmatch(line):
            commit, at = head[1], _instant(head[2])
        elif reverted := _REVERTED.search(line):
            rows.append({"commit_id": commit, "reverted_id": reverted[1], "said_at": at})
    return rows


def _committed_at(place: str) -> datetime:
    return _instant(_git(place, "log", "-n1", "--format=%ct", "HEAD") or "0")


def _instant(seconds: str) -> datetime:
    return datetime.fromtimestamp(min(int(seconds), _LAST_SECOND), UTC)


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
    parts, present = sorted(by_part), set[str]()
    for start in range(0, len(parts), PATTERNS_AT_ONCE):
        patterns = [word for part in parts[start : start + PATTERNS_AT_ONCE] for word in ("-e", part)]
        present |= set(ask(place, "grep", "-I", "-h", "-o", "-w", "-F", *patterns, commit).split())
    return frozenset(name for part in sorted(present & by_part.keys()) for name in by_part[part])


def _declared(place: str, commit: str) -> frozenset[str]:
    """Return the words of the commit's dependency manifests, lower case."""
    globs = [f":(glob)**/{name}" for name in MANIFESTS]
    text = ask(place, "grep", "-I", "-h", "-F", "-e", "", commit, "--", *globs)
    return frozenset(word.lower().rstrip(".-") for word in _WORD.findall(text))


def _commits_until(place: str, instants: Iterable[datetime]) -> dict[datetime, tuple[int, str]]:
    """Return the last commit of HEAD's history until each instant, as (seconds, id)."""
    lines = lines_in(_git(place, "log", f"-n{COMMITS_MOST}", "--format=%ct %H", "HEAD"))
    history = sorted((int(seconds), name) for seconds, name in (line.split() for line in lines))
    times = [seconds for seconds, _ in history]
    places = {at: bisect_right(times, at.timestamp()) for at in instants}
    return {at: history[position - 1] for at, position in places.items() if position}


def _deleted(place: str) -> frozenset[str]:
    # A renamed file is deleted under its old name; telling the two apart would need every file's content,
    # which a partial clone does not have.
    options = ("--no-renames", "--diff-filter=D", "--name-only", "--format=")
    return frozenset(lines_in(_git(place, "log", f"-n{COMMITS_MOST}", *options, "HEAD")))


def _meant(files: frozenset[str], named: frozenset[str]) -> list[str]:
    """Return the files that are named by themselves or by their end, where only one has it."""
    paths = Paths(files)
    candidates = (paths.ending_in(name.lstrip("./")) for name in named)
    return sorted({path for matches in candidates if len(matches) == 1 for path in matches})


def _edits(place: str, paths: list[str]) -> dict[str, tuple[CommitEdit, ...]]:
    """Return by path what each commit did to it, newest first, in one walk over the history."""
    if not paths:
        return {}
    options = ("--no-renames", "--numstat", "--format=@%ct")
    named = [f":(top,literal){path}" for path in paths]
    output = _git(place, "log", f"-n{COMMITS_MOST}", *options, "HEAD", "--", *named)
    by_path: dict[str, list[CommitEdit]] = {}
    at = _instant("0")
    for line in lines_in(output):
        if line.startswith("@"):
            at = _instant(line[1:])
        elif line.count("\t") == 2:
            added, removed, path = line.split("\t")
            if added != "-":  # of a binary file git counts no lines
                by_path.setdefault(path, []).append(CommitEdit(at, int(added), int(removed)))
    return {path: tuple(edits) for path, edits in by_path.items()}


def _unmerged(place: str) -> frozenset[str]:
    names = _git(place, "for-each-ref", "--no-merged=HEAD", "--format=%(refname:short)", "refs/heads")
    # On an older branch the trunk has moved on; what was said there holds for the project all the same.
    return frozenset(lines_in(names)) - {_trunk(place)}


def _gone_unmerged(place: str, branches: frozenset[str]) -> frozenset[str]:
    """
    Return those of some branches that were deleted here, and of whose changes HEAD has none.

    Where one ended is known as long as HEAD's own log says so (90 days, by default). A squash or a rebase
    brings what a branch made of its files under other commits: a file of it as it was there is enough.
    """
    heads = ("refs/heads", "refs/remotes/origin")
    there = lines_in(_git(place, "for-each-ref", "--format=%(refname)", *heads))
    gone = branches - {name.removeprefix(f"{head}/") for name in there for head in heads}
    if not gone or not there:
        return frozenset()
    log = _git(place, "log", "-g", "--format=%H%x09%gs", "HEAD")
    entries = [line.partition("\t") for line in lines_in(log)]
    tips: dict[str, str] = {}
    # The newest first: what HEAD was before it left a branch is the branch's last commit.
    for (_, _, subject), (before, _, _) in pairwise(entries):
        if left := _LEFT_BRANCH.fullmatch(subject):
            tips.setdefault(left[1], before)
    trunk = _trunk(place)
    kept = [f"^{name}" for name in ("HEAD", f"refs/heads/{trunk}") if trunk or name == "HEAD"]
    return frozenset(name for name in sorted(gone & tips.keys()) if _is_lost(place, tips[name], kept))


def _is_lost(place: str, tip: str, kept: list[str]) -> bool:
    try:
        own = _blobs(place, tip, *kept)
        return bool(own) and own.isdisjoint(_blobs(place, "HEAD", f"^{tip}"))
    except GitFailed:
        return False


def _blobs(place: str, *commits: str) -> set[tuple[str, str]]:
    """Return (path, id) of what each file was made by some commits."""
    options = (f"-n{COMMITS_MOST}", "--format=", "--raw", "--no-abbrev", "--no-renames")
    lines = lines_in(ask(place, "log", *options, *commits, "--"))
    rows = (line.partition("\t") for line in lines if line.startswith(":"))
    return {(path, modes.split()[3]) for modes, _, path in rows}


def has_branch(paths: Iterable[str], name: str) -> bool:
    """Return whether the repository at one of `paths` has a local branch of this name."""
    place = repository_at(paths)
    listed = _git(place, "for-each-ref", "--format=%(refname)", "refs/heads") if place else ""
    return f"refs/heads/{name}" in lines_in(listed)


def _trunk(place: str) -> str:
    """Return the branch that others are taken from: what the remote calls HEAD, else one of TRUNKS."""
    remote = _git(place, "for-each-ref", "--format=%(symref:short)", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    local = _git(place, "for-each-ref", "--format=%(refname:short)", *(f"refs/heads/{t}" for t in TRUNKS))
    return next((name for name in TRUNKS if name in local.split()), "")


def branches_at(paths: Iterable[str], branches: Iterable[str]) -> BranchTips:
    """
    Return the local branches of the repository at one of `paths`, and which contain those of `branches`.

    Nothing if there is no repository or none of `branches` is a branch of it.
    """
    place, wanted = repository_at(paths), set(branches)
    if place is None or not wanted:
        return BranchTips({}, {})
    newest = ("--sort=-committerdate", f"--count={BRANCHES_MOST}")
    listed = _git(place, "for-each-ref", *newest, "--format=%(objectname) %(refname:short)", "refs/heads")
    tips = {name: commit for commit, _, name in (line.partition(" ") for line in lines_in(listed))}
    within = {
        name: frozenset(
            lines_in(
                _git(
                    place,
                    "for-each-ref",
                    f"--contains={tips[name]}",
                    "--format=%(refname:short)",
                    "refs/heads",
                )
            )
        )
        for name in sorted(wanted & tips.keys())
    }
    return BranchTips(tips, within, _trunk(place))
