"""Claims about project identity: worktrees, subfolders and clones are one project (spec 3.1)."""

import re
import subprocess
from pathlib import Path

import pytest

from cortex.storage.lake.journal import Journal
from cortex.storage.lake.lake import Lake
from cortex.storage.projects import projects
from cortex.storage.projects.projects import ProjectRegister, identify, normalised_remote
from cortex.transforms.errors import UnknownProject
from tests.examples import cases
from tests.rows import START, entry


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


def register(home: Path) -> ProjectRegister:
    return ProjectRegister(Journal(home, Lake(home)))


@cases(
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


@cases(
    "url",
    [
        "https://git.example/some/repo.git?private_token=Zk83hfa7",
        "https://git.example/some/repo?private_token=Zk83hfa7&x=/y@z",
        "https://git.example/some/repo.git#Zk83hfa7",
        "https://oauth2:Zk83hfa7@git.example/some/repo.git",
        "https://oauth2:Zk83@hfa7@git.example/some/repo.git",
        "https://oauth2:Zk83/hfa7@git.example/some/repo.git",
        "https://oauth2:Zk83?hfa7#Zk83hfa7@git.example/some/repo.git",
        "https://Zk83hfa7@git.example:8443/some/repo.git/?x=Zk83hfa7",
        "HTTPS://user:Zk83hfa7@git.example/some/repo",
        "git+https://user:Zk83hfa7@git.example/some/repo",
        "user:Zk83hfa7@git.example:some/repo.git",
        "git@git.example:some/repo.git?private_token=Zk83hfa7",
        "ssh://user:Zk83hfa7@git.example:22/some/repo.git",
    ],
)
def test_no_credential_of_a_remote_is_in_what_names_the_project(url: str):
    assert normalised_remote(url) == "git.example/some/repo"


def test_a_token_in_the_path_of_a_remote_is_marked():
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    assert token.lower() not in normalised_remote(f"https://git.example/{token}/some/repo.git")


@cases(
    ("url", "normalised"),
    [
        ("/srv/git/c#-lib.git", "/srv/git/c#-lib"),
        ("../what?/now", "../what?/now"),
        ("file:///srv/git/a#b@c.git", "/srv/git/a#b@c"),
        ("git@git.example:c#.git", "git.example/c#"),
        ("https://git.example/@scope/repo@2.git", "git.example/@scope/repo@2"),
        ("https://gist.github.com/abcdef0123456789abcdef01.git", "gist.github.com/abcdef0123456789abcdef01"),
    ],
)
def test_a_remote_without_credentials_is_named_as_ever(url: str, normalised: str):
    assert normalised_remote(url) == normalised == as_before(url)


def as_before(url: str) -> str:
    """Return what version 0.1.0 made of a remote: ids in stores were derived from it."""
    bare = re.sub(r"^[a-z+]+://", "", url.strip().lower())
    bare = re.sub(r"^[^/@]*@", "", bare)
    bare = re.sub(r"^([^/:]+):(\d+/)?", r"\1/", bare)
    return re.sub(r"(\.git)?/*$", "", bare)


def test_what_was_noted_with_a_query_is_shown_without(home: Path):
    journal = Journal(home, Lake(home))
    query = "?private_token=abc"
    noted = {"cwd": "/gone/reef", "name": f"reef.git{query}", "identity": f"git:x/reef.git{query}"}
    journal.write(entry("project", "reef-1", {**noted}, recorded_at=START))
    [project] = ProjectRegister(journal).all()
    assert (project.name, project.identity) == ("reef", "git:x/reef")


@pytest.mark.parametrize("url", [".", "/", "..", "./", "https://"])
def test_a_remote_without_a_name_names_no_project(home: Path, repository: Path, url: str):
    git(repository, "config", "remote.origin.url", url)
    assert identify(str(repository))[0].startswith("root:")
    assert register(home).project_of(str(repository), START).startswith("reef-")


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
    before = register(home).project_of(str(repository), START)
    repository.rename(repository.with_name("moved"))
    assert register(home).project_of(str(repository), START) == before


def test_a_clients_own_worktree_belongs_to_its_project(home: Path):
    projects = register(home)
    main = projects.project_of("/gone/reef", START)
    assert projects.project_of("/gone/reef/.claude/worktrees/agent-1/src", START) == main


def test_a_project_is_named_by_name_id_path_or_transcript_folder(home: Path):
    projects = register(home)
    found = projects.project_of("/gone/my_reef", START)
    for name in ("my_reef", found, "/gone/my_reef", "-gone-my-reef", "/gone/my_reef/src"):
        assert projects.named(name) == [found]


def test_an_unknown_project_is_an_error_that_names_the_known_ones(home: Path):
    projects = register(home)
    projects.project_of("/gone/reef", START)
    with pytest.raises(UnknownProject, match="Known projects: reef"):
        projects.named("riff")


# What changes about a repository leaves the project what it is


def test_clones_without_a_remote_are_one_project_whatever_their_folders_are_called(
    home: Path, repository: Path, tmp_path: Path
):
    git(tmp_path, "clone", str(repository), "elsewhere")
    git(tmp_path / "elsewhere", "remote", "remove", "origin")
    projects = register(home)
    first = projects.project_of(str(repository), START)
    assert projects.project_of(str(tmp_path / "elsewhere"), START) == first


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_clone_of_a_known_folder_on_this_machine_is_its_project(
    home: Path, repository: Path, tmp_path: Path, prefix: str
):
    projects = register(home)
    first = projects.project_of(str(repository), START)
    git(tmp_path, "clone", f"{prefix}{repository}", "clone")
    assert projects.known(str(tmp_path / "clone")) == first
    assert register(home).project_of(str(tmp_path / "clone"), START) == first


def test_a_clone_of_a_folder_that_was_never_seen_is_a_project_of_its_own(
    home: Path, repository: Path, tmp_path: Path
):
    git(tmp_path, "clone", str(repository), "clone")
    git(tmp_path, "clone", str(tmp_path / "clone"), "other")
    projects = register(home)
    own = projects.project_of(str(tmp_path / "other"), START)
    assert projects.known(str(repository)) is None and own


def test_a_repository_that_moves_stays_the_same_project(home: Path, repository: Path, tmp_path: Path):
    projects = register(home)
    first = projects.project_of(str(repository), START)
    repository.rename(tmp_path / "moved")
    assert projects.project_of(str(tmp_path / "moved"), START) == first


def test_a_repository_that_gets_its_remote_later_is_one_project_with_its_new_clones(
    home: Path, repository: Path, tmp_path: Path
):
    projects = register(home)
    first = projects.project_of(str(repository), START)
    git(repository, "remote", "add", "origin", "git@github.com:some/tide.git")
    git(tmp_path, "clone", str(repository), "clone")
    git(tmp_path / "clone", "remote", "set-url", "origin", "https://github.com/some/tide")
    assert projects.project_of(str(tmp_path / "clone"), START) == first
    assert register(home).project_of(str(tmp_path / "clone"), START) == first
    assert [p.project_id for p in register(home).all()] == [first]


def test_a_folder_that_becomes_a_repository_later_is_one_project_with_its_clones(home: Path, tmp_path: Path):
    place = tmp_path / "shoal"
    place.mkdir()
    first = register(home).project_of(str(place), START)
    git(place, "init")
    git(place, "commit", "--allow-empty", "-m", "first")
    git(tmp_path, "clone", str(place), "clone")
    git(tmp_path / "clone", "remote", "remove", "origin")
    assert register(home).project_of(str(tmp_path / "clone"), START) == first


def test_a_renamed_remote_is_the_same_project_where_a_known_folder_says_so(
    home: Path, repository: Path, tmp_path: Path
):
    git(repository, "remote", "add", "origin", "git@github.com:some/tide.git")
    first = register(home).project_of(str(repository), START)
    git(repository, "remote", "set-url", "origin", "git@github.com:some/tidepool.git")
    git(tmp_path, "clone", str(repository), "clone")
    git(tmp_path / "clone", "remote", "set-url", "origin", "git@github.com:some/tidepool.git")
    assert register(home).project_of(str(tmp_path / "clone"), START) == first


def test_forks_are_two_projects_and_merging_them_is_offered(home: Path, repository: Path, tmp_path: Path):
    git(repository, "remote", "add", "origin", "git@github.com:some/tide.git")
    git(tmp_path, "clone", str(repository), "fork")
    git(tmp_path / "fork", "remote", "set-url", "origin", "git@github.com:other/tide.git")
    projects = register(home)
    one, other = (projects.project_of(str(place), START) for place in (repository, tmp_path / "fork"))
    assert one != other
    [offer] = register(home).offers()
    assert {offer.project_id, offer.into} == {one, other}
    assert offer.reason.startswith("both begin with commit ")


def test_a_folder_that_is_gone_is_offered_to_the_repository_of_its_name(home: Path, repository: Path):
    projects = register(home)
    gone = projects.project_of("/gone/reef", START)
    kept = projects.project_of(str(repository), START)
    [offer] = register(home).offers()
    assert (offer.project_id, offer.into) == (gone, kept)


def test_a_merged_project_is_found_by_its_old_name_and_offered_no_more(home: Path, repository: Path):
    journal = Journal(home, Lake(home))
    projects = ProjectRegister(journal)
    gone = projects.project_of("/gone/reef", START)
    kept = projects.project_of(str(repository), START)
    journal.write(entry("project", gone, {"merged_into": kept}, recorded_at=START))
    projects = ProjectRegister(journal)
    assert projects.project_of("/gone/reef", START) == kept
    assert projects.origin_of("/gone/reef", START) == gone  # the lake keeps what was said where it was
    assert projects.named(gone) == [kept]
    assert projects.paths()["/gone/reef"] == kept
    assert projects.offers() == []
    assert [p.merged for p in projects.all()] == [(gone,)]


def test_merges_hold_over_several_steps(home: Path):
    journal = Journal(home, Lake(home))
    a, b, c = (ProjectRegister(journal).project_of(f"/gone/{name}", START) for name in "abc")
    for minute, (gone, kept) in enumerate(((a, b), (b, c))):
        at = START.replace(minute=minute)
        journal.write(entry("project", gone, {"merged_into": kept}, recorded_at=at))
    assert ProjectRegister(journal).parts_of(c) == [c, *sorted((a, b))]
    assert ProjectRegister(journal).merged() == {a: c, b: c}


def test_many_new_repositories_ask_git_about_each_folder_twice_at_most(home: Path, monkeypatch):
    asked: list[str] = []

    def identified(place: str) -> tuple[str, str]:
        asked.append(place)
        return f"git:example.com{place}", Path(place).name

    monkeypatch.setattr(projects, "identify", identified)
    known = register(home)
    for number in range(20):
        known.origin_of(f"/repositories/{number}", START)
    assert len(asked) <= 40
