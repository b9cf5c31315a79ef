"""A brief follows the branch that a session stands on when it starts, not the one of the last run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.hooks import branches as hook
from cortex.transforms.memory.reality import branch_doubt
from tests.bench import kept
from tests.transcripts import Talk

HOOK = Path(__file__).parents[3] / "hooks" / "hook.py"
TRUNK_FACT = "Levels are kept as whole millimetres."
FEATURE_FACT = "The trial keeps its levels in a ring buffer."
MARK = "[on branch try/ring, not merged]"


class Checkout:
    """A repository with a trunk and one unmerged branch, and sessions that said a fact on each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        self.git("switch", "-q", "-c", "try/ring")
        self.commit("ring")
        self.git("switch", "-q", "main")
        self.commit("second")

    def git(self, *words: str) -> None:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        environment = {**os.environ, "HOME": "/nonexistent"}
        subprocess.run(
            ["git", *identity, *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
            env=environment,
        )

    def commit(self, message: str) -> None:
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def talk(self, name: str, branch: str, text: str) -> Talk:
        talk = Talk(name, cwd=str(self.folder)).user("Go on with the levels, please, all of them.")
        talk.assistant(f"[MEMORY: decision] {text}")
        for record in talk.records:
            record["gitBranch"] = branch
        return talk


@pytest.fixture
def checkout(bench) -> Checkout:
    checkout: Checkout = kept(bench, "a trunk and a branch", fill)
    return checkout


def fill(bench) -> Checkout:
    checkout = Checkout(bench.projects / "kelp")
    checkout.talk("s1", "main", TRUNK_FACT).write(bench.projects)
    checkout.talk("s2", "try/ring", FEATURE_FACT).write(bench.projects)
    bench.backfill()
    return checkout


def started(bench, folder: Path) -> dict[str, str]:
    """Start a session in `folder` as the client does, and return the brief's line of each fact."""
    payload = {
        "session_id": "0b6f4a52-7d3e-4c1b-9a55-3f1c8e2d7a10",
        "transcript_path": str(folder / "none.jsonl"),
        "cwd": str(folder),
        "source": "startup",
    }
    environment = {"HOME": str(folder), "CORTEX_HOME": str(bench.home), "PATH": "/nonexistent"}  # no git
    command = [sys.executable, "-I", "-S", str(HOOK), "session-start"]
    ran = subprocess.run(
        command, input=json.dumps(payload).encode(), capture_output=True, env=environment, timeout=30
    )
    handed = json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"]
    found = {
        fact: [line for line in handed.split("\n") if fact in line] for fact in (TRUNK_FACT, FEATURE_FACT)
    }
    return {fact: lines[0] for fact, lines in found.items() if lines}


def is_marked(bench, folder: Path) -> tuple[bool, bool]:
    """Return whether the trunk's fact and the branch's fact are marked."""
    lines = started(bench, folder)
    return "[on branch" in lines[TRUNK_FACT], MARK in lines[FEATURE_FACT]


@pytest.mark.first_is_quick
@pytest.mark.parametrize("content", ["", "{", "[]", '{"lines": [[0, 1, ["x"], false]]}', '{"lines": 7}'])
def test_damaged_notes_leave_the_brief_as_it_is(bench, checkout, content):
    next((bench.home / "published").rglob(hook.NOTES)).write_text(content)
    assert is_marked(bench, checkout.folder) == (False, True)


@pytest.mark.first_is_quick
@pytest.mark.parametrize("head", ["", "ref: refs/heads/.invalid", "ref: refs/tags/x", "ref: refs/heads/../x"])
def test_a_head_that_names_no_branch_leaves_the_brief_as_it_is(bench, checkout, head):
    (checkout.folder / ".git" / "HEAD").write_text(f"{head}\n")
    assert is_marked(bench, checkout.folder) == (False, True)


def test_a_head_that_is_no_file_is_not_waited_for(bench, checkout):
    (checkout.folder / ".git" / "HEAD").unlink()
    os.mkfifo(checkout.folder / ".git" / "HEAD")
    assert is_marked(bench, checkout.folder) == (False, True)


def test_both_sides_write_the_same_mark():
    assert hook.MARK.format("b") == f" {branch_doubt('m', 'b').mark}"
