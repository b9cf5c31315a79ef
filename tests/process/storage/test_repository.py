"""A repository made by scripted commits against claims about it: gone, there, never known (spec 11.3)."""

import os
import subprocess
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cortex.storage.filesystem.git import repository_at, state_of
from cortex.storage.projects.repository import commits_since, doubts_of, reverts_in, subjects_since
from cortex.storage.projects.team_files import team_branch_at
from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.reality import CommitEdit, rewritten_share
from cortex.transforms.policy import Policy
from tests.examples import cases
from tests.rows import memories, memory

FIRST_DAY = datetime(2026, 9, 1, 12, tzinfo=UTC)


class Repository:
    """A git repository whose commits are a day apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.day = 0
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> None:
        at = (FIRST_DAY + timedelta(days=self.day)).isoformat()
        subprocess.run(
            ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
            cwd=self.folder, check=True, capture_output=True,
            env={**os.environ, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "HOME": "/nonexistent"},
        )  # fmt: skip

    def answer(self, *arguments: str, given: str = "") -> str:
        call = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments]
        return subprocess.run(
            call, cwd=self.folder, check=True, capture_output=True, text=True, input=given
        ).stdout.strip()

    def commit(self, **files: str | None) -> None:
        """Commit texts by path (`src__store_py`); None removes the file."""
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_py", ".py").replace("_toml", ".toml")
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.day += 1
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"day {self.day}")


@pytest.fixture
def policy() -> Policy:
    return read_policy(None)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "kelp")
    made.commit(
        src__store_py="def read_store():\n    pass\n\nclass TideGauge:\n    pass\n",
        src__poll_py="def poll_all():\n    pass\n",
        pyproject_toml='[project]\ndependencies = ["flask", "numpy"]\n',
    )
    return made


def claim(
    name: str, text: str, day: int = 1, branch: str | None = "main", **chosen: object
) -> dict[str, object]:
    said_at = FIRST_DAY + timedelta(days=day, hours=1)
    evidence = {
        "turn_id": "t", "session_id": "s", "file": "f", "lines": [1], "layer": "llm:small@session-1",
        "said_at": said_at, "git_branch": branch,
    }  # fmt: skip
    return memory(name, text, updated_at=said_at, evidence=[evidence], **chosen)


def doubted(repository: Repository, policy: Policy, *claims: dict[str, object]) -> dict[str, str]:
    found = doubts_of([str(repository.folder)], memories(*claims), policy)
    return {doubt.memory_id: doubt.reason for doubt in found}


STANDING = (
    claim("file", "Readings are kept by src/store.py in one file."),
    claim("bare", "All polling is in poll.py and nothing else polls."),
    claim("symbol", "`read_store()` opens the database once a run."),
    claim("class", "Each station is a `TideGauge` with a timeout."),
    claim("package", "The dashboard is served by flask behind nginx."),
)


def test_what_is_still_there_is_not_doubted(repository, policy):
    assert doubted(repository, policy, *STANDING) == {}


def test_what_later_commits_took_away_is_outdated(repository, policy):
    repository.commit(src__store_py=None, src__poll_py=None, src__lake_py="def open_lake():\n    pass\n")
    repository.commit(pyproject_toml='[project]\ndependencies = ["numpy"]\n')
    assert doubted(repository, policy, *STANDING) == {
        "file": "file src/store.py is gone",
        "bare": "file poll.py is gone",
        "symbol": "`read_store` is gone",
        "class": "`TideGauge` is gone",
        "package": "flask is no longer a dependency",
    }


def test_a_renamed_file_is_gone_under_its_old_name_only(repository, policy):
    repository.git("mv", "src/poll.py", "src/fetch.py")
    repository.commit()
    old, new = (
        claim("old", "Polling is in src/poll.py today."),
        claim("new", "Polling is in src/fetch.py today."),
    )
    assert doubted(repository, policy, old, new) == {"old": "file src/poll.py is gone"}


def test_what_never_was_there_is_not_doubted(repository, policy):
    strange = (
        claim("elsewhere", "The other project keeps its tides in lib/tides.py."),
        claim("planned", "`write_lake()` will take over from the store."),
        claim("word", "Redis holds the sessions of the website."),
    )
    assert doubted(repository, policy, *strange) == {}


def test_what_says_itself_that_something_went_is_right(repository, policy):
    repository.commit(src__store_py=None)
    told = (
        claim("removed", "We removed src/store.py because nobody read it."),
        claim("instead", "The lake is used instead of `read_store()` since September."),
    )
    assert doubted(repository, policy, *told) == {}


@pytest.mark.parametrize(
    "text",
    [
        "We chose FastAPI over Flask for the API because it validates input.",
        "Use FastAPI instead of Flask.",
        "The API is served by FastAPI, not Flask.",
        "FastAPI rather than Flask: the forms are typed.",
        "Instead of Flask, the API uses FastAPI.",
        "We replaced Flask with FastAPI.",
        "We moved from Flask to FastAPI.",
        "We rejected Flask in favour of FastAPI.",
        "Wir nehmen FastAPI statt Flask, weil es prüft.",
        "Statt Flask nehmen wir FastAPI.",
        "On prend FastAPI plutôt que Flask.",
        "FastAPI au lieu de Flask pour les formulaires.",
        "Usamos FastAPI en lugar de Flask.",
    ],
)
def test_a_choice_is_doubted_where_its_rejected_rival_is_declared_and_it_is_not(repository, policy, text):
    assert doubted(repository, policy, claim("choice", text)) == {}  # nothing was committed since
    repository.commit(src__api_py="pass\n")
    repository.commit(src__api_py="pass  # again\n")
    assert doubted(repository, policy, claim("choice", text)) == {
        "choice": "fastapi is not a dependency, flask is"
    }
    repository.commit(pyproject_toml='[project]\ndependencies = ["fastapi", "numpy"]\n')
    assert doubted(repository, policy, claim("choice", text)) == {}  # flask being gone is what it says


def test_what_a_memory_turned_down_elsewhere_counts_too(repository, policy):
    repository.commit(src__api_py="pass\n")
    repository.commit(src__api_py="pass  # again\n")
    choice = claim("choice", "FastAPI serves the API.", rejected="Flask")
    assert doubted(repository, policy, choice) == {"choice": "fastapi is not a dependency, flask is"}


@pytest.mark.parametrize(
    "text",
    [
        "We chose Redis over Flask sessions.",  # no rivals: one takes nothing from the other
        "Use SQLite instead of numpy files.",
        "Flask over Django.",
        "Next.js over React Router.",
        "Requests go over Flask.",
        "FastAPI and Flask both serve pages.",
        "Send JSON over HTTP, not FastAPI.",
    ],
)
def test_a_choice_among_things_that_are_no_rivals_is_not_doubted(repository, policy, text):
    repository.commit(src__api_py="pass\n")
    repository.commit(src__api_py="pass  # again\n")
    assert doubted(repository, policy, claim("choice", text)) == {}


def test_a_choice_whose_chosen_side_went_is_doubted(repository, policy):
    repository.commit(pyproject_toml='[project]\ndependencies = ["numpy"]\n')
    repository.commit(src__api_py="pass\n")
    choice = claim("choice", "We chose Flask over Django.")
    assert doubted(repository, policy, choice) == {"choice": "flask is no longer a dependency"}


def test_what_happened_stays_true(repository, policy):
    repository.commit(src__store_py=None)
    assert doubted(repository, policy, claim("done", "Changed src/store.py.", memory_type="progress")) == {}


def test_what_was_said_on_a_branch_not_merged_holds_there_alone(repository, policy):
    repository.git("checkout", "-q", "-b", "spike")
    repository.commit(src__spike_py="x = 1\n")
    repository.git("checkout", "-q", "main")
    told = claim("spike", "Spikes are filtered by the median.", branch="spike")
    assert doubted(repository, policy, told) == {"spike": "branch spike is not merged into HEAD"}
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "spike")
    assert doubted(repository, policy, told) == {}


def test_a_branch_that_is_checked_out_or_unknown_is_no_doubt(repository, policy):
    told = (claim("here", "Fact one.", branch="main"), claim("gone", "Fact two.", branch="long-deleted"))
    assert doubted(repository, policy, *told) == {}


@pytest.mark.parametrize(
    ("taken_in", "reasons"),
    [
        ((), {"spike": "branch spike is gone and was not merged into HEAD"}),
        (("merge", "-q", "--no-ff", "-m", "merge", "spike"), {}),
        (("merge", "-q", "--squash", "spike"), {}),
        (("cherry-pick", "spike"), {}),
    ],
)
def test_a_branch_that_went_is_a_doubt_only_if_nothing_of_it_was_taken_in(
    repository, policy, taken_in, reasons
):
    repository.git("checkout", "-q", "-b", "spike")
    repository.commit(src__spike_py="x = 1\n")
    repository.git("checkout", "-q", "main")
    repository.commit(src__other_py="y = 1\n")
    if taken_in:
        repository.git(*taken_in)
        if "--squash" in taken_in:
            repository.git("commit", "-q", "-m", "Spike in one")
    repository.git("branch", "-q", "-D", "spike")
    told = claim("spike", "Spikes are filtered by the median.", branch="spike")
    assert doubted(repository, policy, told) == reasons


def test_without_the_folder_nothing_is_doubted(tmp_path, policy):
    assert doubts_of([str(tmp_path / "nowhere")], memories(*STANDING), policy) == []
    assert repository_at([str(tmp_path)]) is None
    assert state_of([str(tmp_path)]) == ""


def test_a_new_commit_changes_the_state(repository):
    before = state_of([str(repository.folder)])
    repository.commit(src__new_py="x = 1\n")
    assert before and state_of([str(repository.folder)]) != before


def test_commits_of_impossible_times_and_lines_in_names_and_subjects_are_read(repository, policy):
    repository.commit(**{"src__a\u2028:b_py": "x\n", "src__store_py": None})
    tree, parent = (repository.answer("rev-parse", name) for name in ("HEAD^{tree}", "HEAD"))
    commit = repository.answer(
        "hash-object", "-t", "commit", "-w", "--stdin", "--literally",
        given=f"tree {tree}\nparent {parent}\nauthor T <t@example.org> 1 +0000\n"
        "committer T <t@example.org> 999999999999999 +0000\n\n"
        f"Mend\fa great thing\n\n@{parent} 99999999999999999\nThis reverts commit {parent}.\n",
    )  # fmt: skip
    repository.git("update-ref", "refs/heads/main", commit)
    repository.git("branch", "od\u2028d")
    folder = [str(repository.folder)]
    assert [row["reverted_id"] for row in reverts_in(folder)] == [parent]
    assert subjects_since(folder, FIRST_DAY, 9)[0][2] == "Mend\fa great thing"
    assert team_branch_at(folder)
    last = datetime.max.replace(tzinfo=UTC)
    claims = (
        claim("m1", "Reading is `read_store()` in src/store.py."),
        claim("m2", "Polling is in src/poll.py."),
    )
    assert list(
        doubted(repository, policy, *claims, {**claims[1], "memory_id": "m3", "updated_at": last})
    ) == ["m1"]


def test_a_tree_that_is_deep_takes_no_memory(repository, policy):
    blob = repository.answer("hash-object", "-w", "--stdin", given="x\n")
    tree = repository.answer(
        "mktree", given="".join(f"100644 blob {blob}\tf{number}.py\n" for number in range(40))
    )
    for _ in range(300):
        tree = repository.answer("mktree", given=f"040000 tree {tree}\t{'a' * 10}\n")
    deep = repository.answer("commit-tree", tree, "-p", "HEAD", "-m", "deep")
    repository.git("update-ref", "refs/heads/main", deep)
    tracemalloc.start()
    assert doubted(repository, policy, claim("m1", "Polling is in src/poll.py.", memory_type="architecture"))
    assert tracemalloc.get_traced_memory()[1] < 8_000_000  # 24 MB with a table of all ends of these 40 paths
    tracemalloc.stop()


def test_nothing_of_the_repository_is_run(repository, policy, tmp_path):
    trap = tmp_path / "sprung"
    script = repository.folder / "monitor.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\n")
    script.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(script))
    repository.git("config", "core.hooksPath", str(repository.folder))
    doubted(repository, policy, *STANDING)
    trap.unlink(missing_ok=True)
    doubted(repository, policy, *STANDING)
    assert not trap.exists()


# Commits since


def test_a_described_file_whose_lines_went_is_doubted_and_a_grown_one_is_not(repository, policy):
    lines = "".join(f"step_{at} = {at}\n" for at in range(20))
    repository.commit(src__turns_py=lines, src__grown_py=lines)
    described = {"memory_type": "architecture"}
    said = [
        claim("turns", "Gauges are polled by turns in src/turns.py.", day=2, **described),
        claim("grown", "src/grown.py polls by turns.", day=2, **described),
    ]
    repository.day += 3
    repository.commit(src__turns_py=lines.replace("step", "stage"), src__grown_py=lines * 5)
    assert doubted(repository, policy, *said) == {
        "turns": "100% of the lines of src/turns.py went in 1 commits since"
    }


def test_a_decision_outlives_the_rewriting_of_the_file_it_names(repository, policy):
    repository.day += 3
    repository.commit(src__poll_py="def poll_all():\n    return 1\n\n\n" + "x = 1\n" * 9)
    repository.commit(src__poll_py="def poll_all():\n    return 2\n")
    assert doubted(repository, policy, claim("m", "Polling stays in src/poll.py.")) == {}


@cases(
    ("edits", "share", "commits"),
    [
        ([(0, 10, 0), (2, 10, 10)], 1.0, 1),
        ([(0, 10, 0), (2, 1, 2), (3, 1, 3)], 0.5, 2),
        ([(0, 10, 0)], 0.0, 0),
        ([(2, 10, 0), (3, 10, 10)], 0.0, 2),  # it was not there when the memory was said
    ],
)
def test_the_share_of_lines_that_later_commits_removed(edits, share, commits):
    told = [CommitEdit(FIRST_DAY + timedelta(days=day), added, removed) for day, added, removed in edits]
    assert rewritten_share(told, FIRST_DAY + timedelta(days=1)) == (share, commits)


def test_commits_after_an_instant_are_counted(repository):
    repository.commit(a_py="a = 1\n")
    repository.commit(a_py="a = 2\n")
    second_commit = FIRST_DAY + timedelta(days=2)
    count, head = commits_since([str(repository.folder)], second_commit)
    assert (count, len(head)) == (1, 7)
    assert commits_since(["/gone"], second_commit) == (0, "")


@pytest.mark.parametrize("name", ["src/removed.py", "src/dropdown.py", "src/renamed_over.py"])
def test_a_file_at_the_end_of_a_sentence_or_with_a_telling_name_is_checked(repository, policy, name):
    path = name.replace("/", "__").replace(".py", "_py")
    repository.commit(**{path: "x = 1\n"})
    repository.day += 3
    repository.commit(**{path: None})
    assert doubted(repository, policy, claim("m", f"Retries live in {name}.", day=2)) == {
        "m": f"file {name} is gone"
    }
