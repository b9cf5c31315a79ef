"""The brief in a file instead of the hook's, kept out of git, and exactly undone (spec 11.1)."""

import json
import os
import subprocess

import pytest

from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings
from tests.bench import NOW, words_for_a_model
from tests.hook_client import HOOKS
from tests.process.flows.test_surfaces import (
    git,
    project,  # noqa: F401
    snapshot,
)

SAID = "[MEMORY: decision] Readings are kept in SQLite, not PostgreSQL, because one writer is enough."


CONTEXT = "additionalContext"


@pytest.fixture
def read(tmp_path, project, monkeypatch):
    """Return a function that runs an ingest with a surface, after a session in the project."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    transcript = tmp_path / "projects" / "p" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    said = {"type": "assistant", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-10-30T10:00:00Z"}
    message = {"role": "assistant", "content": [{"type": "text", "text": SAID}]}
    transcript.write_text(json.dumps({**said, "cwd": str(project), "message": message}) + "\n")

    def run(surface, **options):
        settings = Settings(home=tmp_path / "home", brief_surface=surface, **options)
        runs.stage_all(settings, [transcript])
        return runs.execute("ingest", Context(settings, words_for_a_model, lambda: NOW))

    return run


def handed_over(tmp_path, folder, source="startup"):
    told = {"session_id": "n", "transcript_path": str(tmp_path / "none" / "n.jsonl"), "cwd": str(folder)}
    env = {"HOME": str(tmp_path / "user"), "CORTEX_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    command = ["python3", "-I", "-S", str(HOOKS / "hook.py"), "session-start"]
    stdin = json.dumps({**told, "source": source}).encode()
    out = subprocess.run(command, input=stdin, env=env, capture_output=True, check=True).stdout
    return json.loads(out)["hookSpecificOutput"][CONTEXT] if out else ""


def note_of(report):
    return next(stage.note for stage in report.stages if stage.stage == "render")


@pytest.mark.parametrize(
    ("surface", "name"),
    [("rules", ".claude/rules/cortex-brief.md"), ("local", "CLAUDE.local.md"), ("docs/memory.md",) * 2],
)
def test_a_file_takes_the_place_of_the_hook_and_is_gone_again(read, tmp_path, project, surface, name):
    read("hook")
    assert "SQLite" in handed_over(tmp_path, project)
    before = snapshot(project)

    report = read(surface)
    text = (project / name).read_text()
    assert (
        text.startswith("<!-- CORTEX:START -->\n# Notes from earlier sessions: kelp\n") and "SQLite" in text
    )
    assert git(project, "status", "--porcelain") == "" and note_of(report) == ""
    assert handed_over(tmp_path, project) == "" == handed_over(tmp_path, project / "src")

    read("hook")
    assert snapshot(project) == before
    assert "SQLite" in handed_over(tmp_path, project)


def test_the_users_own_file_keeps_every_byte_and_its_mode(read, project):
    own = project / "CLAUDE.local.md"
    own.write_bytes(b"Use tabs.\r\nno end")
    own.chmod(0o640)
    before = snapshot(project)
    read("local")
    assert own.read_bytes().startswith(b"Use tabs.\r\nno end\r\n<!-- CORTEX:START -->\r\n")
    read("hook")
    assert snapshot(project) == before


def test_a_file_in_git_is_not_hidden_from_it(read, project):
    (project / "CLAUDE.md").write_text("a\n<!-- CORTEX:START -->\n<!-- CORTEX:END -->\nb\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    before = snapshot(project)
    read("CLAUDE.md")
    assert (project / "CLAUDE.md").read_text().endswith("<!-- CORTEX:END -->\nb\n")
    assert git(project, "status", "--porcelain") == " M CLAUDE.md\n"
    read("hook")
    assert {name: told for name, told in snapshot(project).items() if name != ".git/index"} == {
        name: told for name, told in before.items() if name != ".git/index"
    }


def test_moving_to_another_surface_leaves_nothing_at_the_first(read, project):
    before = snapshot(project)
    read("rules")
    read("local")
    assert (project / "CLAUDE.local.md").is_file() and not (project / ".claude").exists()
    read("hook")
    assert snapshot(project) == before


def test_what_the_user_keeps_beside_the_rule_stays(read, project):
    read("rules")
    (project / ".claude" / "rules" / "mine.md").write_text("mine")
    read("hook")
    assert [path.name for path in (project / ".claude" / "rules").iterdir()] == ["mine.md"]


def test_a_second_run_writes_nothing(read, project):
    read("rules")
    path = project / ".claude" / "rules" / "cortex-brief.md"
    before = path.stat().st_mtime_ns, path.stat().st_ino
    read("rules")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_a_file_that_the_user_deletes_comes_back_and_meanwhile_the_hook_speaks(read, tmp_path, project):
    read("rules")
    (project / ".claude" / "rules" / "cortex-brief.md").unlink()
    assert "SQLite" in handed_over(tmp_path, project)
    read("rules")
    assert handed_over(tmp_path, project) == ""


def test_a_link_out_of_the_project_is_not_followed(read, tmp_path, project):
    (tmp_path / "profile").write_text("mine\n")
    (project / "CLAUDE.local.md").symlink_to(tmp_path / "profile")
    report = read("local")
    assert (tmp_path / "profile").read_text() == "mine\n"
    assert "a link leads out of the project" in note_of(report)
    assert "SQLite" in handed_over(tmp_path, project)


def test_markers_that_are_no_pair_leave_the_file_and_the_hook_as_they_are(read, tmp_path, project):
    (project / "CLAUDE.local.md").write_text("<!-- CORTEX:START -->\nmine\n")
    before = snapshot(project)
    assert "not one pair" in note_of(read("local"))
    assert snapshot(project) == before and "SQLite" in handed_over(tmp_path, project)


def test_a_setting_that_leads_elsewhere_is_told(read, tmp_path, project):
    assert "brief.surface is '../x'" in note_of(read("../x"))
    assert "SQLite" in handed_over(tmp_path, project)


def test_one_project_may_have_a_file_and_the_others_the_hook(read, project):
    read("hook", by_project={str(project): {"brief.surface": "rules"}})
    assert (project / ".claude" / "rules" / "cortex-brief.md").is_file()
