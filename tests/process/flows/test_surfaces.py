"""The brief in a file instead of the hook's, kept out of git, and exactly undone (spec 11.1)."""

import json
import os
import subprocess

import pytest

from cortex.storage.published.surface import Surfaces, roots_of


def git(place, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    asked = ["git", *who, "-C", str(place), *words]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path):
    """A repository with one commit."""
    folder = tmp_path / "work" / "kelp"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Kelp\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def snapshot(folder):
    """Return every file of a folder with its bytes and mode, and every folder."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode) if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_worktrees_share_gits_list_until_the_last_one_is_done(tmp_path, project):
    tree = tmp_path / "work" / "kelp-two"
    git(project, "worktree", "add", "-q", str(tree))
    before = snapshot(project), snapshot(tree)
    surfaces = Surfaces(tmp_path / "home")
    files = [surfaces.show(root, "CLAUDE.local.md", "brief") for root in (project, tree)]
    assert [git(root, "status", "--porcelain") for root in (project, tree)] == ["", ""]
    again = Surfaces(tmp_path / "home")
    again.withdraw(files[0])
    assert git(tree, "status", "--porcelain") == ""
    again.withdraw(files[1])
    assert (snapshot(project), snapshot(tree)) == before


def test_a_folder_outside_of_git_needs_no_list(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    surfaces = Surfaces(tmp_path / "home")
    path = surfaces.show(folder, ".claude/rules/cortex-brief.md", "brief")
    assert path.is_file()
    surfaces.withdraw(path)
    assert list(folder.iterdir()) == []


@pytest.mark.first_is_quick
@pytest.mark.parametrize("step", range(1, 8))
def test_a_kill_at_any_write_is_mended_by_the_next_run(tmp_path, project, monkeypatch, step):
    """Writes are counted; the one at `step` and all after it do not happen."""
    from cortex.storage.published import surface as module

    before, count = snapshot(project), 0

    def until(write):
        def counted(*words):
            nonlocal count
            count += 1
            if count >= step:
                raise KeyboardInterrupt
            write(*words)

        return counted

    with monkeypatch.context() as patch:
        for name in ("write_stored", "_replace"):
            patch.setattr(module, name, until(getattr(module, name)))
        try:
            doomed = Surfaces(tmp_path / "home")
            doomed.withdraw(doomed.show(project, "CLAUDE.local.md", "brief"))
        except KeyboardInterrupt:
            pass
    mended = Surfaces(tmp_path / "home")
    path = mended.show(project, "CLAUDE.local.md", "brief")
    assert git(project, "status", "--porcelain") == "" and "brief" in path.read_text()
    Surfaces(tmp_path / "home").withdraw(path)
    assert snapshot(project) == before
    assert not json.loads((tmp_path / "home" / "runs" / "surfaces.json").read_bytes())["blocks"]


def test_a_folder_that_may_not_be_looked_into_is_passed_over(tmp_path, project, monkeypatch):
    look = os.stat

    def refuse(path, **how):
        if str(path).startswith(f"{tmp_path}/shut/"):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **how)

    monkeypatch.setattr(os, "stat", refuse)
    assert roots_of([str(tmp_path / "shut" / "in"), str(project)]) == [project]


def test_home_and_what_is_gone_are_no_projects(tmp_path, project, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (project / "src").mkdir()
    assert roots_of([str(tmp_path), "/", str(tmp_path / "gone"), str(project / "src"), str(project)]) == [
        project
    ]
