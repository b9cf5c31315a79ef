"""The opposite of what was remembered is never reinforced: a person is asked, or both are kept."""

import subprocess

import click
import pytest

NPM = "Use npm, not pnpm, in the web folder"
PNPM = "Use pnpm, not npm, in the web folder"


@pytest.fixture
def remembered(cortex):
    assert cortex("remember", NPM, "--json").json["outcome"] == "remembered"
    return cortex


def active(cortex):
    rows = cortex("sql", "select text from memories where status = 'active' order by text", "--json").json
    return [text for (text,) in rows["rows"]]


def test_without_a_terminal_both_are_kept_and_the_review_asks(remembered):
    answer = remembered("remember", PNPM)
    assert "Remembered as" in answer.out and "both are kept: cortex review" in answer.out + answer.err
    assert active(remembered) == [NPM, PNPM]
    [project] = [each for each in remembered("review", "--json").json["projects"] if each["items"]]
    assert [(item["kind"], item["texts"]) for item in project["items"]] == [("contradiction", [NPM, PNPM])]


def test_recall_and_infer_name_what_was_chosen_and_turned_down(cortex):
    cortex("remember", "Chose Redis over Memcached for the cache because it persists", "--type", "decision")
    [result] = cortex("recall", "Redis cache", "--json").json["results"]
    assert (result["chosen"], result["rejected"], result["why"]) == ("Redis", "Memcached", "it persists")
    [step] = cortex("infer", "cache", "--json").json["chain"]
    assert (step["rejected"], step["reason"]) == ("Memcached", "it persists")


@pytest.mark.parametrize(("says", "left"), [(True, [PNPM]), (False, [NPM, PNPM])])
def test_at_a_terminal_the_person_says_whether_the_new_one_takes_its_place(
    remembered, monkeypatch, says, left
):
    monkeypatch.setattr("cortex.cli.edit_and_share.remember.can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *words, **more: says)
    assert NPM in remembered("remember", PNPM).out
    assert active(remembered) == left


def test_the_assistant_learns_nothing_against_it(remembered):
    answer = remembered("learn", PNPM, "--by-assistant", "--json")
    assert answer.code != 0 and answer.json["error"]["code"] == "CORTEX_E402"
    assert active(remembered) == [NPM]


def test_what_is_told_knows_its_branch_commit_folder_and_session(cortex, tmp_path, monkeypatch):
    folder, session = tmp_path / "reef", "0f0e0d0c-0000-4000-8000-000000000001"
    folder.mkdir()
    who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    for words in (("init", "-q", "-b", "side"), ("commit", "-q", "--allow-empty", "-m", "Begin")):
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True).stdout
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", session)
    answer = cortex("remember", NPM, "--json").json
    columns = "git_branch, git_commit, folder, session_id"
    [row] = cortex("sql", f"select {columns} from memories", "--json").json["rows"]
    assert row == ["side", commit.strip(), str(folder), session]
    shown = cortex("show", answer["id"]).out
    assert "side" in shown and str(folder) in shown
    cortex("remember", PNPM, "--global")
    rows = cortex("sql", f"select {columns} from memories where category = 'global'", "--json").json["rows"]
    assert rows == [[None, None, str(folder), session]]
