"""
The files of a team's memories in a repository: as its default branch holds them, and as a branch proposes
them.

Read from git's objects, never from the working tree: what somebody has checked out, or not merged yet,
does not count, and neither links nor filters have a part in it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cortex.storage.filesystem.git import (
    GitFailed,
    answer_of,
    ask,
    ask_bytes,
    change,
    lines_in,
    refs_state,
    working_tree,
)
from cortex.transforms.documents.team_memory import LARGEST_TEAM_FILE_BYTES, TEAM_FOLDER, author_name
from cortex.transforms.identity import content_id

# More are no memories of a team but somebody's data.
MAX_TEAM_FILES = 2_000
_TRUNKS = ("main", "master", "trunk", "develop")
_REMOTE, _LOCAL = "refs/remotes/origin/", "refs/heads/"
_COMMIT_FIELDS = ("%H", "%an", "%ae", "%at", "%B")
_CO_AUTHOR = re.compile(r"^co-authored-by:([^<\n]*)<([^>\n]*)>", re.IGNORECASE | re.MULTILINE)
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\.md")
_REGULAR = ("100644", "100755")
_READ_ME = "README.md"


@dataclass(frozen=True)
class TeamBranch:
    """The default branch of a repository on this machine: its working tree, its tip, and the tip's time."""

    top: str
    ref: str
    commit: str
    committed_at: int

    @property
    def name(self) -> str:
        """Return the branch's name as people call it."""
        return self.ref.removeprefix("refs/remotes/").removeprefix(_LOCAL)


@dataclass(frozen=True)
class TeamFile:
    """
    One file of the folder: its bytes, or why they were not read (`problem`).

    `committers` are names and e-mail addresses that git notes for its commits, the first author first; empty
    if the history does not reach that far. `changed_at` is when it last changed.
    """

    path: str
    content: bytes = b""
    problem: str = ""
    committers: tuple[str, ...] = ()
    changed_at: datetime | None = None


def team_branch_at(places: Iterable[str]) -> TeamBranch | None:
    """
    Return the default branch of the repository that `places` are clones of; of several the newest.

    As it was last fetched, where there is a remote: what only this machine has was not reviewed. None if
    no place is a repository with such a branch.
    """
    tops = {top for place in places if (top := working_tree(place))}
    branches = [branch for top in sorted(tops) if (branch := _default_branch_of(top))]
    return max(branches, key=lambda branch: (branch.committed_at, branch.top), default=None)


def branches_state(places: Iterable[str]) -> str:
    """Return what changes whenever `team_branch_at` might; it costs a few looks at files, and no git."""
    tops = sorted({top for place in places if (top := working_tree(place))})
    return content_id(*(part for top in tops for part in (top, refs_state(top)))) if tops else ""


def _default_branch_of(top: str) -> TeamBranch | None:
    names = [start + name for start in (_REMOTE, _LOCAL) for name in ("HEAD", *_TRUNKS)]
    line = "%(refname)%00%(symref)%00%(objectname)%00%(committerdate:unix)"
    tips: dict[str, TeamBranch] = {}
    for row in lines_in(answer_of(top, "for-each-ref", f"--format={line}", *names)):
        ref, symbolic, commit, at = row.split("\0")
        tips[ref] = TeamBranch(top, symbolic or ref, commit, int(at or 0))
    if not tips:  # one branch by another name, in a repository without a remote
        rows = lines_in(answer_of(top, "for-each-ref", "--count=2", f"--format={line}", _LOCAL))
        only = [row.split("\0") for row in rows]
        tips = {
            ref: TeamBranch(top, ref, commit, int(at or 0)) for ref, _, commit, at in only[: len(only) == 1]
        }
    return next((tips[name] for name in (*names, *tips) if name in tips), None)


def team_files(branch: TeamBranch, folder: str = TEAM_FOLDER) -> list[TeamFile]:
    """Return the files of a branch's folder, by path; what is none of a memory's comes with the reason."""
    listed = ask_bytes(branch.top, "ls-tree", "-r", "-l", "-z", "--full-tree", branch.commit, "--", folder)
    entries = [_Entry.of(line, folder) for line in listed.decode("utf-8", "replace").split("\0") if line]
    entries = [entry for entry in entries if entry.name != _READ_ME]
    if not entries:
        return []
    contents = _contents(branch.top, [entry for entry in entries if not entry.problem])
    commits = _commits_of(branch, folder)
    files = []
    for at, entry in enumerate(entries):
        problem = entry.problem or (
            "" if at < MAX_TEAM_FILES else f"the folder has more than {MAX_TEAM_FILES} files"
        )
        committers, changed_at = commits.get(entry.path, ((), None))
        content = b"" if problem else contents.get(entry.object, b"")
        files.append(TeamFile(entry.path, content, problem, committers, changed_at))
    return files


@dataclass(frozen=True)
class _Entry:
    path: str
    name: str
    object: str
    problem: str

    @classmethod
    def of(cls, line: str, folder: str) -> "_Entry":
        """Return what a line of `ls-tree -l` says, with what keeps it from being a memory's file."""
        head, _, path = line.partition("\t")
        mode, kind, name, size = head.split()
        inner = path.removeprefix(folder + "/")
        problem = ""
        if mode not in _REGULAR or kind != "blob":
            problem = "it is a link or another repository, not a file"
        elif "/" in inner:
            problem = "it is in a subfolder"
        elif not _FILE_NAME.fullmatch(inner):
            problem = "its name is not that of a memory's file (letters, digits, dashes, .md)"
        elif int(size) > LARGEST_TEAM_FILE_BYTES:
            problem = f"it has more than {LARGEST_TEAM_FILE_BYTES // 1024} kB"
        return cls(path, inner, name, problem)


def _contents(top: str, entries: Sequence[_Entry]) -> dict[str, bytes]:
    """Return the bytes of blobs by their name, all with one question."""
    names = sorted({entry.object for entry in entries[:MAX_TEAM_FILES]})
    if not names:
        return {}
    given = "".join(f"{name}\n" for name in names).encode()
    answer, at = ask_bytes(top, "cat-file", "--batch", given=given), 0
    contents: dict[str, bytes] = {}
    while at < len(answer):
        head, _, _ = answer[at : at + 200].partition(b"\n")
        at += len(head) + 1
        words = head.decode("ascii", "replace").split()
        if len(words) == 3:  # a blob that is missing here (a partial clone) has two
            contents[words[0]] = answer[at : at + int(words[2])]
            at += int(words[2]) + 1
    return contents


@dataclass
class _Touched:
    people: list[str] = field(default_factory=list)
    at: int = 0


def _commits_of(branch: TeamBranch, folder: str) -> dict[str, tuple[tuple[str, ...], datetime | None]]:
    """Return who committed each path of a folder, oldest first, and when it last changed, where known."""
    question = (
        "--no-renames",
        "--name-only",
        "--reverse",
        "--format=%x00" + "%x00".join(_COMMIT_FIELDS) + "%x00",
    )
    try:
        if ask(branch.top, "rev-parse", "--is-shallow-repository") == "true":
            return {}  # its first commit seems to have added every file
        answer = ask(branch.top, "log", *question, branch.commit, "--", folder)
    except GitFailed:
        return {}
    touched: dict[str, _Touched] = {}
    parts = answer.split("\0")[1:]
    for at in range(0, len(parts) - len(_COMMIT_FIELDS), len(_COMMIT_FIELDS) + 1):
        _, name, address, instant, body, paths = parts[at : at + len(_COMMIT_FIELDS) + 1]
        people = [name, address, *(each.strip() for pair in _CO_AUTHOR.findall(body) for each in pair)]
        for path in filter(None, paths.split("\n")):
            known = touched.setdefault(path, _Touched())
            known.people += [each for each in people if each not in known.people]
            known.at = max(known.at, int(instant or 0))
    return {path: (tuple(known.people), _instant(known.at)) for path, known in touched.items()}


def _instant(seconds: int) -> datetime | None:
    """Return an instant, None for one that no clock has."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return None


def agreed_author(claim: str, committers: Sequence[str]) -> tuple[str, bool]:
    """
    Return the name to show for a file's author, and whether git agrees with what the file says.

    Where git names somebody else it is git's first author; if it names nobody, nobody is named.

    >>> agreed_author("Bo", ("Ana Lopez", "ana@example.org"))
    ('Ana Lopez', False)
    >>> agreed_author("ana lopez", ("Ana Lopez", "ana@example.org"))
    ('Ana Lopez', True)
    """
    names = [author_name(each) for each in committers]
    agreed = next((name for name in names if name and name.casefold() == claim.casefold()), "")
    return agreed or next(filter(None, names), ""), bool(agreed)


# -- The branch on which memories are proposed: written as git objects, without touching working tree and
# index.

PROPOSAL_BRANCH = "cortex/memories"
_HEADS = "refs/heads/"
# A branch of such a name has two meanings, and git takes the other one.
_NAMESPACES = ("refs", "heads", "tags", "remotes", "origin", "@")
_COMMIT_NAME = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class CommitAuthor:
    """Who commits, as git knows them."""

    name: str
    address: str


def is_branch_name(name: str) -> bool:
    """
    Return whether a name can be a branch's: a part of what git takes, and nothing that it would confuse.

    >>> is_branch_name("cortex/memories"), is_branch_name("-x"), is_branch_name("a..b")
    (True, False, False)
    >>> any(map(is_branch_name, ("HEAD", "refs/heads/main", "heads/main", "ORIG_HEAD", "a" * 40)))
    False
    """
    parts = name.split("/")
    if name.upper().endswith("HEAD") or parts[0].lower() in _NAMESPACES or _COMMIT_NAME.fullmatch(name):
        return False
    are_plain = all(part and part[0] not in ".-" and not part.endswith((".", ".lock")) for part in parts)
    are_signs = all(sign.isascii() and (sign.isalnum() or sign in "/._-") for sign in name)
    return are_plain and are_signs and ".." not in name and len(name) <= 200


def tip_of(top: str, branch: str) -> str:
    """Return the commit that a local branch points at; empty if there is none."""
    return answer_of(top, "for-each-ref", "--format=%(objectname)", _HEADS + branch)


def checked_out_at(top: str, branch: str) -> bool:
    """Return whether the branch is the one that a working tree of the repository has checked out."""
    rows = answer_of(top, "for-each-ref", "--format=%(worktreepath)", _HEADS + branch)
    return bool(rows.strip())


def proposed_files(base: TeamBranch, branch: str, folder: str = TEAM_FOLDER) -> dict[str, str]:
    """
    Return path → blob of what a branch changes in a folder and its base does not have yet; "" for a removal.

    Also if the branch was merged by a squash or a rebase, which leaves it no ancestor of its base.
    """
    tip = tip_of(base.top, branch)
    if not tip:
        return {}
    ours, theirs = _blobs(base.top, tip, folder), _blobs(base.top, base.commit, folder)
    before = _blobs(base.top, answer_of(base.top, "merge-base", tip, base.commit), folder)
    changed = {path: blob for path, blob in ours.items() if before.get(path) != blob}
    changed |= {path: "" for path in before.keys() - ours.keys()}
    return {path: blob for path, blob in sorted(changed.items()) if theirs.get(path, "") != blob}


def _blobs(top: str, commit: str, folder: str) -> dict[str, str]:
    listed = answer_of(top, "ls-tree", "-r", "-z", "--full-tree", commit, "--", folder) if commit else ""
    entries = (line.partition("\t") for line in listed.split("\0") if line)
    return {path: head.split()[2] for head, _, path in entries}


def commit_files(
    base: TeamBranch,
    branch: str,
    files: Mapping[str, bytes | None],
    *,
    person: CommitAuthor,
    message: str,
    seconds: int,
    starts_over: bool,
) -> str:
    """
    Commit files (None: removed) to a branch and return the commit; working trees and index stay as they are.

    The branch goes on from its tip, or from its base where it is new or `starts_over`. `seconds` are those
    since 1970. Raises GitFailed.
    """
    tip = "" if starts_over else tip_of(base.top, branch)
    text = message.encode()
    who = f"{_plain(person.name)} <{_plain(person.address)}> {seconds} +0000"
    lines = [f"commit {_HEADS}{branch}", f"committer {who}", f"data {len(text)}"]
    stream = bytearray(
        "\n".join(lines).encode() + b"\n" + text + b"\n" + f"from {tip or base.commit}\n".encode()
    )
    for path, content in sorted(files.items()):
        if content is None:
            stream += f"D {path}\n".encode()
        else:
            stream += f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n"
    force = ("--force",) if starts_over else ()
    change(base.top, "fast-import", *force, given=bytes(stream + b"done\n"))
    commit = ask(base.top, "rev-parse", _HEADS + branch)
    if not commit:
        raise GitFailed
    return commit


def _plain(text: str) -> str:
    return " ".join(text.replace("<", "").replace(">", "").split())
