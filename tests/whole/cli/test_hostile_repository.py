"""Every command that asks a repository, over one whose configuration names programs: none of them runs."""

from tests.process.storage.test_git import Trap, hooked, promisor, trap, two_commits  # noqa: F401
from tests.shell import Cortex
from tests.transcripts import decisions

COMMANDS = (
    ("run", "--engine", "plain"),
    ("nightly", "--engine", "plain"),
    ("brief", "--explain"),
    ("recall", "harvest records"),
    ("review",),
    ("projects",),
    ("status",),
    ("stats",),
    ("doctor",),
    ("remember", "Levels are kept by `read_store()` in src/store.py."),
    ("index-code", "src/store.py"),
)


def test_no_command_runs_what_a_repository_names(cortex: Cortex, tmp_path, monkeypatch, trap: Trap):
    trap.sign_head("PGP SIGNATURE")
    hooked(trap)
    promisor(trap, ("remote.origin.url", "."), ("remote.origin.uploadpack", str(trap.program)))
    trap.set(
        ("log.showSignature", "true"),
        *((name, str(trap.program)) for name in ("gpg.program", "core.fsmonitor", "diff.external")),
    )
    trap.is_sprung()
    monkeypatch.chdir(trap.folder)
    decisions("s1", cwd=str(trap.folder)).write(tmp_path / "projects")
    assert cortex("backfill", tmp_path / "projects", "--engine", "plain").code == 0
    for words in COMMANDS:
        assert cortex(*words, stdin="It keeps the readings of a day in one file.").code in (0, 1), words
        assert not trap.is_sprung(), words
