"""
The branch on which memories are proposed: written as git objects, without touching working tree and index.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cortex.storage.ground.git import (
    GitFailed,
    answer_of,
    ask,
    change,
)
from cortex.storage.projects.team_files import TeamBranch
from cortex.transforms.documents.team_memory import TEAM_FOLDER

PROPOSAL_BRANCH = "cortex/memories"
_HEADS = "refs/heads/"


@dataclass(frozen=True)
class CommitAuthor:
    """Who commits, as git knows them."""

    name: str
    address: str


def is_branch_name(name: str) -> bool:
    """
    Return whether a name can be a branch's: a part of what git takes.

    >>> is_branch_name("cortex/memories"), is_branch_name("-x"), is_branch_name("a..b")
    (True, False, False)
    """
    parts = name.split("/")
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
