"""Hostile repositories in which each setting names a program: none of them runs when Cortex asks."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.storage.filesystem import git
from cortex.storage.filesystem.git import GitFailed, ask, working_tree
from cortex.storage.projects import projects, repository
from cortex.storage.settings.reference import read_policy
from tests.rows import memories, memory

ROOT = Path(__file__).parents[3]
AT = datetime(2026, 9, 1, tzinfo=UTC)
PACKAGES = ("cortex", "flows", "hooks", "storage", "transforms")


def run_git(place: Path, *words: str, check: bool = True, **environment: str) -> str:
    """Run git as a shell does, with nothing guarded; the home is empty."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    result = subprocess.run(
        ["git", "-C", str(place), *identity, *words],
        check=check, capture_output=True, text=True, start_new_session=True, timeout=20,
        input="protocol=https\nhost=example.invalid\n\n",  # what `credential` wants to know
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
    )  # fmt: skip
    return result.stdout.strip()


class Trap:
    """A repository with two commits, and a program that leaves its mark when something runs it."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder = Path(shutil.copytree(repository, folder / "kelp", symlinks=True))
        self.canary = folder / "canary"
        self.program = folder / "program"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >>{self.canary}\nexit 1\n')
        self.program.chmod(0o755)

    def set(self, *settings: tuple[str, str]) -> None:
        for name, value in settings:
            run_git(self.folder, "config", name, value)

    def is_sprung(self) -> bool:
        """Return whether the program ran since the last time this was asked."""
        ran = self.canary.exists()
        self.canary.unlink(missing_ok=True)
        return ran

    def sign_head(self, armour: str) -> None:
        """Put something that looks like a signature on HEAD."""
        raw = run_git(self.folder, "cat-file", "commit", "HEAD")
        head, _, message = raw.partition("\n\n")
        signed = f"{head}\ngpgsig -----BEGIN {armour}-----\n \n AAAA\n -----END {armour}-----\n\n{message}\n"
        made = subprocess.run(
            ["git", "-C", str(self.folder), "hash-object", "-t", "commit", "-w", "--stdin"],
            input=signed, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        run_git(self.folder, "update-ref", "refs/heads/main", made)

    def lose_blobs(self) -> None:
        """Take every file's content out of the object store, as in a partial clone."""
        for commit in run_git(self.folder, "rev-list", "HEAD").split():
            for line in run_git(self.folder, "ls-tree", "-r", commit).splitlines():
                blob = line.split()[2]
                (self.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def two_commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with two commits, of which each trap is a copy: making one takes five processes."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "src").mkdir()
    run_git(folder, "init", "-q")
    (folder / ".gitattributes").write_text("*.py diff=evil filter=evil merge=evil\n")
    (folder / "pyproject.toml").write_text('[project]\ndependencies = ["flask"]\n')
    for text in ("def read_store():\n    pass\n", "def open_lake():\n    pass\n"):
        (folder / "src" / "store.py").write_text(text)
        run_git(folder, "add", "-A")
        run_git(folder, "commit", "-q", "-m", "work")
    return folder


@pytest.fixture
def trap(tmp_path: Path, two_commits: Path) -> Trap:
    return Trap(tmp_path, two_commits)


def questions_about(place: Path) -> list[object]:
    """Ask all that Cortex ever asks of a repository; return the answers."""
    said = {
        "turn_id": "t", "session_id": "s", "file": "f", "lines": [1], "layer": "llm:small@1", "said_at": AT,
        "git_branch": "main",
    }  # fmt: skip
    texts = ("Tides are in src/store.py.", "`read_store()` opens it.", "It is served by flask.")
    claims = [
        memory(f"m{at}", text, updated_at=AT, evidence=[said], memory_type="architecture")
        for at, text in enumerate(texts)
    ]
    paths = [str(place)]
    return [
        projects.identify(str(place)),
        projects.first_commit(str(place)),
        git.repository_at(paths),
        git.state_of(paths),
        repository.doubts_of(paths, memories(*claims), read_policy(None)),
        repository.commits_since(paths, AT),
    ]


def promisor(trap: Trap, *more: tuple[str, str]) -> None:
    trap.set(
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        *more,
    )
    trap.lose_blobs()


def signed(name: str, armour: str, *more: tuple[str, str]) -> Callable[[Trap], None]:
    def lay(trap: Trap) -> None:
        trap.sign_head(armour)
        trap.set(("log.showSignature", "true"), (name, str(trap.program)), *more)

    return lay


def named(
    *settings: tuple[str, str], then: Callable[[Trap], None] = lambda trap: None
) -> Callable[[Trap], None]:
    """Return what sets the settings, `%` standing for the program."""

    def lay(trap: Trap) -> None:
        trap.set(*((name, value.replace("%", str(trap.program))) for name, value in settings))
        then(trap)

    return lay


def fetching(url: str, *more: tuple[str, str]) -> Callable[[Trap], None]:
    def lay(trap: Trap) -> None:
        given = (("remote.origin.url", url), ("protocol.allow", "always"), *more)
        promisor(trap, *((name, value.replace("%", str(trap.program))) for name, value in given))

    return lay


def edited(trap: Trap) -> None:
    (trap.folder / "src" / "store.py").write_text("def other():\n    pass\n")


def hooked(trap: Trap) -> None:
    hooks = trap.folder / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        (hooks / name).symlink_to(trap.program)
    trap.set(("core.hooksPath", str(hooks)))
    edited(trap)


def included(trap: Trap) -> None:
    trap.sign_head("PGP SIGNATURE")
    (trap.folder / "more").write_text(f"[log]\nshowSignature = true\n[gpg]\nprogram = {trap.program}\n")
    trap.set(("include.path", "../more"))


# How the trap is laid, and an ordinary command that springs it: a trap that nothing springs proves nothing.
MISSING_BLOB = ("cat-file", "-p", "HEAD:src/store.py")
TRAPS: dict[str, tuple[Callable[[Trap], None], tuple[str, ...]]] = {
    "gpg.program": (signed("gpg.program", "PGP SIGNATURE"), ("log", "-1")),
    "gpg.openpgp.program": (signed("gpg.openpgp.program", "PGP SIGNATURE"), ("log", "-1")),
    "gpg.x509.program": (signed("gpg.x509.program", "SIGNED MESSAGE"), ("log", "-1")),
    "gpg.ssh.program": (
        signed("gpg.ssh.program", "SSH SIGNATURE", ("gpg.ssh.allowedSignersFile", "/dev/null")),
        ("log", "-1"),
    ),
    "include.path": (included, ("log", "-1")),
    "remote.uploadpack": (fetching(".", ("remote.origin.uploadpack", "%")), MISSING_BLOB),
    "remote.uploadpack, allowed": (
        fetching("file:///", ("remote.origin.uploadpack", "%"), ("protocol.file.allow", "always")),
        MISSING_BLOB,
    ),
    "remote helper": (fetching("ext::%", ("protocol.ext.allow", "always")), MISSING_BLOB),
    "core.sshCommand": (fetching("ssh://example.invalid/a", ("core.sshCommand", "%")), MISSING_BLOB),
    "core.gitProxy": (fetching("git://example.invalid/a", ("core.gitProxy", "%")), MISSING_BLOB),
    "core.fsmonitor": (named(("core.fsmonitor", "%")), ("status",)),
    "core.hooksPath": (hooked, ("add", "-A")),
    "core.pager": (named(("core.pager", "%")), ("-p", "log")),
    "pager.log": (named(("pager.log", "%")), ("log",)),
    "core.editor": (named(("core.editor", "%")), ("commit", "--allow-empty")),
    "sequence.editor": (named(("sequence.editor", "%")), ("rebase", "-i", "HEAD~1")),
    "diff.external": (named(("diff.external", "%"), then=edited), ("diff",)),
    "diff.<driver>.command": (named(("diff.evil.command", "%"), then=edited), ("diff",)),
    "diff.<driver>.textconv": (named(("diff.evil.textconv", "%")), ("log", "-p")),
    "filter.<driver>.clean": (named(("filter.evil.clean", "%"), then=edited), ("add", "-A")),
    "filter.<driver>.smudge": (
        named(("filter.evil.smudge", "%"), then=edited),
        ("checkout", "--", "src/store.py"),
    ),
    "filter.<driver>.process": (named(("filter.evil.process", "%"), then=edited), ("add", "-A")),
    "alias": (named(("alias.lg", "!%")), ("lg",)),
    "trailer.<name>.command": (
        named(("trailer.a.command", "%")),
        ("interpret-trailers", "--trailer", "a=b", "pyproject.toml"),
    ),
    "core.alternateRefsCommand": (
        named(("core.alternateRefsCommand", "%"), then=lambda trap: with_alternate(trap)),
        ("fetch", "../source"),
    ),
    "core.askPass": (named(("core.askPass", "%")), ("credential", "fill")),
    "credential.helper": (named(("credential.helper", "!%")), ("credential", "fill")),
}  # fmt: skip
# On a terminal only: `run_git` has none, and an answer of ours never goes to one.
NEEDS_TERMINAL = {"core.pager", "pager.log"}


def with_alternate(trap: Trap) -> None:
    source, alternate = trap.folder.parent / "source", trap.folder.parent / "alternate"
    run_git(trap.folder.parent, "clone", "-q", str(trap.folder), str(source))
    run_git(source, "commit", "-q", "--allow-empty", "-m", "more")
    run_git(trap.folder.parent, "clone", "-q", str(trap.folder), str(alternate))
    (trap.folder / ".git" / "objects" / "info" / "alternates").write_text(f"{alternate}/.git/objects\n")


@pytest.mark.parametrize("name", TRAPS)
def test_no_setting_of_a_repository_starts_a_program(trap, name):
    TRAPS[name][0](trap)
    trap.is_sprung()
    questions_about(trap.folder)
    questions_about(trap.folder / "src")
    assert not trap.is_sprung()


@pytest.mark.parametrize("name", [name for name in TRAPS if name not in NEEDS_TERMINAL])
def test_each_trap_is_sprung_by_an_ordinary_git(trap, name):
    lay, words = TRAPS[name]
    lay(trap)
    trap.is_sprung()
    run_git(trap.folder, *words, check=False)
    assert trap.is_sprung()


@pytest.mark.parametrize(
    "name", ["gpg.program", "gpg.ssh.program", "include.path", "remote.uploadpack", "core.sshCommand"]
)
def test_without_the_guard_the_same_questions_spring_the_trap(trap, name, monkeypatch):
    TRAPS[name][0](trap)
    trap.is_sprung()
    monkeypatch.setattr(git, "_SETTINGS", ())
    monkeypatch.setattr(git, "_OWN", {"HOME": "/nonexistent"})
    monkeypatch.setattr(git, "QUESTIONS", dict.fromkeys(git.QUESTIONS, ()))
    questions_about(trap.folder)
    assert trap.is_sprung()


def bare_in(trap: Trap) -> Path:
    """Turn the repository into a bare one that a clone could hold as a plain folder."""
    trap.sign_head("PGP SIGNATURE")
    trap.set(("log.showSignature", "true"), ("gpg.program", str(trap.program)), ("core.bare", "true"))
    outer = trap.folder.parent / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    (trap.folder / ".git").rename(outer / "docs")
    return outer / "docs"


def test_a_bare_repository_that_a_clone_holds_as_a_folder_is_none(trap, monkeypatch):
    place = bare_in(trap)
    run_git(place, "log", "-1")
    assert trap.is_sprung()
    questions_about(place)
    assert not trap.is_sprung()
    assert projects.identify(str(place)) == (f"path:{place}", "docs")
    # A git before 2.38 does not know the setting; the way to the top of the working tree ends there, too.
    monkeypatch.setattr(git, "_SETTINGS", ())
    questions_about(place)
    assert not trap.is_sprung()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_DIR", "%/.git"),
        ("GIT_CONFIG_PARAMETERS", "'remote.origin.url'='https://example.org/other'"),
        ("GIT_TRACE", "%/trace"),
        ("GIT_EXTERNAL_DIFF", "%/program"),
        ("GIT_SSH_COMMAND", "%/program"),
    ],
)
def test_nothing_from_outside_the_repository_counts(trap, monkeypatch, tmp_path, name, value):
    before = questions_about(trap.folder)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv(name, value.replace("%", str(other)))
    run_git(other, "init", "-q")
    assert questions_about(trap.folder) == before
    assert not (other / "trace").exists()


def test_a_users_own_configuration_does_not_count(trap, monkeypatch, tmp_path):
    before = questions_about(trap.folder)
    (tmp_path / ".gitconfig").write_text(
        f'[core]\nfsmonitor = {trap.program}\n[remote "origin"]\nurl = x/y\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    assert questions_about(trap.folder) == before
    assert not trap.is_sprung()


def test_a_program_called_git_in_the_repository_is_not_run(trap, monkeypatch):
    (trap.folder / "git").symlink_to(trap.program)
    monkeypatch.chdir(trap.folder)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    questions_about(trap.folder)
    assert not trap.is_sprung()


# A deadline


def test_a_git_that_hangs_is_ended_with_all_it_started_and_asked_no_more(trap, monkeypatch, tmp_path):
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    pids = tmp_path / "pids"
    slow.write_text(f"#!/bin/sh\nsleep 60 &\necho $$ $! >>{pids}\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(git, "_hung", set())
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(GitFailed):
            ask(str(trap.folder), "rev-parse", "HEAD", seconds=0.3)
    assert time.monotonic() - began < 3
    [line] = pids.read_text().splitlines()
    assert [pid for pid in line.split() if is_alive(int(pid))] == []


def test_an_answer_without_end_is_cut_off(trap, monkeypatch, tmp_path):
    endless = tmp_path / "bin" / "git"
    endless.parent.mkdir()
    endless.write_text("#!/bin/sh\nexec cat /dev/zero\n")
    endless.chmod(0o755)
    monkeypatch.setenv("PATH", f"{endless.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(git, "MAX_BYTES", 4 * 1024 * 1024)
    with pytest.raises(GitFailed):
        ask(str(trap.folder), "rev-parse", "HEAD")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


# Honest repositories


def test_a_submodule_is_a_project_of_its_own_with_right_answers(trap, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    run_git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(trap.folder), "lib")
    run_git(outer, "commit", "-q", "-m", "first")
    run_git(outer / "lib", "remote", "remove", "origin")
    head = run_git(trap.folder, "rev-parse", "HEAD")
    assert ask(str(outer / "lib" / "src"), "rev-parse", "HEAD") == head
    assert projects.identify(str(outer / "lib"))[0] == f"root:{projects.first_commit(str(trap.folder))}"
    assert projects.first_commit(str(outer)) != projects.first_commit(str(trap.folder))


def test_a_worktree_gives_the_answers_of_its_own_branch(trap, tmp_path):
    run_git(trap.folder, "worktree", "add", "-q", "-b", "spike", str(tmp_path / "tree"))
    run_git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "more")
    tree = str(tmp_path / "tree")
    assert ask(tree, "rev-parse", "--abbrev-ref", "HEAD") == "spike"
    assert ask(tree, "rev-parse", "HEAD") != ask(str(trap.folder), "rev-parse", "HEAD")
    assert working_tree(tree) == tree


def test_a_worktree_of_a_bare_repository_is_asked(trap, tmp_path):
    run_git(tmp_path, "clone", "-q", "--bare", str(trap.folder), "kelp.git")
    run_git(tmp_path / "kelp.git", "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    assert ask(str(tmp_path / "tree"), "rev-parse", "HEAD") == run_git(trap.folder, "rev-parse", "HEAD")


def test_a_partial_clone_is_asked_without_fetching(trap, tmp_path):
    gone = trap.folder / "src" / "old.py"
    gone.write_text("def old_tide():\n    pass\n")
    for words in (("add", "-A"), ("commit", "-q", "-m", "old"), ("rm", "-q", "src/old.py")):
        run_git(trap.folder, *words)
    run_git(trap.folder, "commit", "-q", "-m", "away")
    run_git(trap.folder, "config", "uploadpack.allowFilter", "true")
    run_git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{trap.folder}", "partial")
    place = tmp_path / "partial"
    objects = sorted((place / ".git" / "objects").rglob("*"))
    assert git.state_of([str(place)])
    claimed = memory(
        "m",
        "Old tides are in src/old.py.",
        updated_at=datetime.now(UTC),
        evidence=[],
        memory_type="architecture",
    )
    [doubt] = repository.doubts_of([str(place)], memories(claimed), read_policy(None))
    assert doubt.reason == "file src/old.py is gone"
    assert sorted((place / ".git" / "objects").rglob("*")) == objects


def test_where_the_contents_of_head_are_not_here_nothing_is_said_to_be_gone(trap):
    promisor(trap)
    said = {
        "turn_id": "t", "session_id": "s", "file": "f", "lines": [1], "layer": "llm:small@1",
        "said_at": datetime.now(UTC), "git_branch": "main",
    }  # fmt: skip
    claimed = memory("m", "`open_lake()` opens it.", updated_at=datetime.now(UTC), evidence=[said])
    assert repository.doubts_of([str(trap.folder)], memories(claimed), read_policy(None)) == []


def test_a_repository_of_another_user_is_asked_where_the_user_trusts_it(trap, monkeypatch, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    for path in (trap.folder, *trap.folder.rglob("*")):
        os.chown(path, 65534, 65534)
    monkeypatch.setenv("HOME", str(tmp_path))
    git._trusted.cache_clear()
    assert git.repository_at([str(trap.folder)]) is None
    (tmp_path / ".gitconfig").write_text(f"[safe]\ndirectory = {trap.folder}\n")
    git._trusted.cache_clear()
    assert git.repository_at([str(trap.folder)]) == str(trap.folder)
    git._trusted.cache_clear()


def test_what_a_repository_configures_of_the_form_of_answers_changes_none(trap):
    before = questions_about(trap.folder)
    trap.set(
        ("color.ui", "always"), ("color.grep", "always"), ("grep.lineNumber", "true"),
        ("grep.column", "true"), ("log.follow", "true"), ("log.showRoot", "false"),
        ("core.quotePath", "true"),
        ("format.pretty", "raw"), ("log.date", "relative"), ("diff.renames", "copies"),
    )  # fmt: skip
    assert questions_about(trap.folder) == before


# One place


def test_no_other_module_starts_a_program():
    starts = re.compile(r"\b(subprocess|Popen|pty|posix_spawn\w*|os\.(?:system|popen|exec\w+|spawn\w+))\b")
    allowed = {
        "storage/filesystem/git.py": {"subprocess", "Popen"},
        "hooks/background.py": {"os.execve"},
        # Started only if a person asks for it: the client, Prefect's server, the machine's timer.
        "flows/writers/claude_login.py": {"subprocess", "Popen"},
        "flows/operations/maintain/serve.py": {"subprocess", "Popen"},
        "storage/machine/client_program.py": {"subprocess"},
        "storage/machine/schedule.py": {"subprocess"},
        # Cortex itself, for the length of a large batch.
        "flows/reading/shard_worker.py": {"subprocess", "Popen"},
        # Cortex itself, for one query that has limits.
        "flows/operations/ask/sql.py": {"subprocess", "Popen"},
    }
    found: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name = path.resolve().relative_to(ROOT).as_posix()
            words = set(starts.findall(path.read_text()))
            if words:
                found[name] = words
    assert found == allowed
