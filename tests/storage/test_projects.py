"""Claims about project identity: worktrees, subfolders and clones are one project (spec 3.1)."""

import subprocess
from pathlib import Path

import pytest

from cortex.errors import UnknownProject
from cortex.storage.journal import Journal
from cortex.storage.lake import Lake
from cortex.storage.projects import ProjectBook, identify, normalised_remote
from tests.rows import START


def git(place: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(place), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "reef"
    place.mkdir()
    git(place, "init")
    git(place, "commit", "--allow-empty", "-m", "first")
    return place


def book(home: Path) -> ProjectBook:
    return ProjectBook(Journal(home, Lake(home)))


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Some/Repo.git",
        "https://github.com/some/repo",
        "https://user:key@github.com:443/some/repo.git/",
        "ssh://git@github.com:22/some/repo.git",
    ],
)
def test_all_spellings_of_a_remote_are_one(url: str):
    assert normalised_remote(url) == "github.com/some/repo"


def test_a_remote_names_the_project(repository: Path):
    git(repository, "remote", "add", "origin", "git@github.com:some/tide.git")
    assert identify(str(repository)) == ("git:github.com/some/tide", "tide")


def test_a_subfolder_a_worktree_and_a_clone_are_the_same_project(repository: Path, tmp_path: Path):
    (repository / "sub").mkdir()
    git(repository, "worktree", "add", str(tmp_path / "tree"))
    git(tmp_path, "clone", str(repository), "other")
    git(tmp_path / "other", "remote", "remove", "origin")
    places = [repository, repository / "sub", tmp_path / "tree", tmp_path / "other"]
    assert len({identify(str(place))[0] for place in places}) == 1


def test_a_folder_outside_git_goes_by_its_path(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    assert identify(str(tmp_path / "notes")) == (f"path:{tmp_path / 'notes'}", "notes")


def test_a_project_stays_the_same_after_its_folder_is_gone(home: Path, repository: Path):
    before = book(home).project_of(str(repository), START)
    repository.rename(repository.with_name("moved"))
    assert book(home).project_of(str(repository), START) == before


def test_a_clients_own_worktree_belongs_to_its_project(home: Path):
    projects = book(home)
    main = projects.project_of("/gone/reef", START)
    assert projects.project_of("/gone/reef/.claude/worktrees/agent-1/src", START) == main


def test_a_project_is_named_by_name_id_path_or_transcript_folder(home: Path):
    projects = book(home)
    found = projects.project_of("/gone/my_reef", START)
    for name in ("my_reef", found, "/gone/my_reef", "-gone-my-reef", "/gone/my_reef/src"):
        assert projects.named(name) == [found]


def test_an_unknown_project_is_an_error_that_names_the_known_ones(home: Path):
    projects = book(home)
    projects.project_of("/gone/reef", START)
    with pytest.raises(UnknownProject, match="Known projects: reef"):
        projects.named("riff")
