"""At a prompt the session is told what bears on it, once, and nothing where nothing does (spec 11.4)."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from datetime import date, datetime

import pytest
from cortex.storage.hook_index import write_hook_index
from cortex.transforms.brief.hook_index import FRAME, Note, settings_of, stop_words_of

from cortex.hooks import prompt, shown
from cortex.hooks.tokens import tokens_in
from cortex.storage.reference import read_policy
from cortex.transforms.journal_entries import Recall, from_row

KILN = "/home/ada/kiln"
FIRING = "The kiln is fired in two ramps because the celadon glaze crawls when it is heated fast."
SHELVES = "Alumina wash goes on the kiln shelves before each cobalt firing."
SALES = "Invoices to the gallery carry the VAT number of the cooperative."
ASKED = "Why do we fire the celadon glaze in two ramps?"


def note(text, name=None, **chosen):
    line = chosen.pop("line", f"- decision: {text} (14 Sep 26, 3f2a, .92)")
    told = {
        "memory_id": name or text.split()[0].lower(), "memory_type": "decision", "line": line, "text": text,
        "updated_on": date(2026, 9, 14), "tokens": tokens_in(line),
        "marks": (f"mark-{text[:4]}",), "brief_line": None,
    }  # fmt: skip
    return Note(**(told | chosen))


def publish(client, *notes, project="p1", **settings):
    client.publish(KILN, project, "# Notes\n")
    policy = read_policy(None)
    path = client.home / "published" / project / prompt.INDEX
    write_hook_index(path, notes, settings_of(policy) | settings, stop_words_of(policy))
    return path


def ask(client, text, session="session-1", **environment):
    payload = {"session_id": session, "transcript_path": "/t/s.jsonl", "cwd": KILN, "prompt": text}
    return client.hook("user-prompt-submit", json.dumps(payload).encode(), **environment)


def told(ran):
    assert (ran.returncode, ran.stderr) == (0, b"")
    if not ran.stdout:
        return []
    output = json.loads(ran.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert output["additionalContext"].startswith(FRAME + "\n")
    return output["additionalContext"].removeprefix(FRAME + "\n").split("\n")


def start(client, source, session="session-1"):
    payload = {"session_id": session, "transcript_path": "/t/s.jsonl", "cwd": KILN, "source": source}
    return client.hook("session-start", json.dumps(payload).encode())


@pytest.fixture
def kiln(client):
    publish(client, note(FIRING, "firing"), note(SHELVES, "shelves"), note(SALES, "sales"))
    return client


def test_a_prompt_about_a_subject_brings_its_note_and_no_other(kiln):
    assert told(ask(kiln, ASKED)) == [f"- decision: {FIRING} (14 Sep 26, 3f2a, .92)"]


@pytest.mark.parametrize(
    "text",
    [
        "Write a function that reverses a linked list.",
        "Now add a test for that, please.",
        "What is the capital of Mongolia?",
        "yes",
        "ok thanks, continue",
        "はい",
        "weiter so",
        "네, 계속해 주세요",
        "",
        "celadon",
    ],
)
def test_an_unrelated_or_trivial_prompt_brings_nothing(kiln, text):
    assert kiln.is_silent(ask(kiln, text))
    assert kiln.log == ""


@pytest.mark.parametrize("lead", prompt.NOT_A_PERSONS)
def test_what_programs_send_brings_nothing(kiln, lead):
    assert kiln.is_silent(ask(kiln, f"{lead} {ASKED}"))


def test_words_are_found_whatever_their_case_and_ending(kiln):
    assert len(told(ask(kiln, "CELADON GLAZES: how many ramps?"))) == 1


def test_no_note_comes_twice_in_a_session(kiln):
    assert len(told(ask(kiln, ASKED))) == 1
    assert kiln.is_silent(ask(kiln, ASKED))


def test_two_sessions_at_once_know_nothing_of_each_other(kiln):
    assert told(ask(kiln, ASKED)) == told(ask(kiln, ASKED, session="session-2"))


@pytest.mark.parametrize("source", ["compact", "clear"])
def test_what_was_shown_is_forgotten_when_the_conversation_is(kiln, source):
    first = told(ask(kiln, ASKED))
    start(kiln, source)
    assert told(ask(kiln, ASKED)) == first


@pytest.mark.parametrize("source", ["resume", "fork"])
def test_a_resumed_session_still_has_what_it_was_shown(kiln, source):
    ask(kiln, ASKED)
    start(kiln, source)
    assert kiln.is_silent(ask(kiln, ASKED))


def test_what_stands_in_the_sessions_brief_is_not_said_again(client):
    line = "- The kiln is fired in two ramps. (14 Sep 26, 3f2a, .92)"
    publish(client, note(FIRING, brief_line=line))
    client.publish(KILN, "p1", f"# Notes\n\n{line}\n")
    assert len(told(ask(client, ASKED, session="began before the brief said so"))) == 1
    start(client, "startup")
    assert client.is_silent(ask(client, ASKED))


def test_at_most_five_notes_within_their_budget(client):
    notes = [note(f"{FIRING} Batch {word} of clay.", word) for word in "abcdefgh"]
    different = [
        note(" ".join([f"w{n}{i}" for i in range(60)] + ["celadon glaze ramps"]), f"n{n}") for n in range(9)
    ]
    publish(client, *different)
    lines = told(ask(client, "celadon glaze ramps"))
    assert 1 <= len(lines) <= 5
    assert tokens_in("\n".join([FRAME, *lines])) <= 800 and len("\n".join([FRAME, *lines])) <= 3000
    publish(client, *notes)
    assert len(told(ask(client, ASKED, session="other"))) == 1  # the rest say the same


def test_names_of_code_and_files_count_as_a_whole(client):
    publish(
        client, note("`glaze_table.py` is generated by loadRecipes, so edits are lost.", "table"), note(SALES)
    )
    assert len(told(ask(client, "Please edit glaze_table.py"))) == 1
    assert len(told(ask(client, "where is loadRecipes called", session="2"))) == 1
    assert client.is_silent(ask(client, "edit the table", session="3"))


def test_scripts_without_spaces_are_found_by_pairs_of_characters(client):
    publish(
        client, note("釉薬は二段階で焼成する。急に温度を上げると釉薬が縮れるため。", "yuyaku"), note(SALES)
    )
    assert len(told(ask(client, "釉薬の焼成はなぜ二段階ですか"))) == 1
    assert client.is_silent(ask(client, "リストを逆順にする関数を書いてください", session="2"))


def test_what_is_asked_at_the_end_of_a_long_paste_is_seen(kiln):
    assert kiln.is_silent(ask(kiln, "lorem ipsum dolor " * 20_000 + FIRING[:10]))
    assert len(told(ask(kiln, "same same " * 20_000 + ASKED))) == 1


def test_what_was_shown_stands_in_the_journal_without_its_text(kiln):
    before = datetime.now().astimezone()
    ask(kiln, ASKED)
    [path] = (kiln.staging / "journal").iterdir()
    found = json.loads(path.read_bytes())
    at = datetime.fromisoformat(found["recorded_at"])
    marks = json.loads(found["payload"])["told"]
    assert "mark-The " in " ".join([*marks, ""]) and before <= at <= datetime.now().astimezone()
    made = Recall([], marks).to_row("p1", recorded_at=at, actor="prompt")
    assert found == {**made, "recorded_at": found["recorded_at"]} and path.stem == made["entry_id"]
    assert from_row(found) == Recall([], marks)
    assert "celadon" not in path.read_text()


def test_where_no_run_takes_the_journal_in_nothing_more_is_shown(kiln):
    journal = kiln.staging / "journal"
    journal.mkdir(parents=True)
    for number in range(prompt.MAX_WAITING):
        (journal / f"{number}.json").touch()
    assert kiln.is_silent(ask(kiln, ASKED))


def test_of_many_sessions_the_newest_are_remembered(kiln):
    folder = kiln.staging / "shown"
    folder.mkdir(parents=True)
    for number in range(shown.MAX_SESSIONS + 20):
        (folder / f"old-{number:04d}").touch()
        os.utime(folder / f"old-{number:04d}", (number, number))
    ask(kiln, ASKED)
    names = {path.name for path in folder.iterdir()}
    assert len(names) == shown.MAX_SESSIONS
    assert "old-0000" not in names and f"old-{shown.MAX_SESSIONS + 19:04d}" in names
    assert kiln.names("tmp") == []


def test_without_an_index_or_a_project_nothing_is_said_or_written(client):
    client.publish(KILN, "p1", "# Notes\n")
    assert client.is_silent(ask(client, ASKED))
    client.publish("/home/ada/other", "p2", "# Notes\n")
    assert client.is_silent(ask(client, ASKED))
    assert client.log == "" and not client.staging.exists()


@pytest.mark.parametrize("damage", ["empty", "no database", "cut", "of a later version"])
def test_an_index_that_cannot_be_read_is_silence(kiln, damage):
    path = kiln.home / "published" / "p1" / prompt.INDEX
    whole = path.read_bytes()
    if damage == "of a later version":
        with sqlite3.connect(path) as index:
            index.execute("update settings set value = 2 where name = 'version'")
    else:
        path.write_bytes({"empty": b"", "no database": b"x" * 5000, "cut": whole[: len(whole) // 2]}[damage])
    assert kiln.is_silent(ask(kiln, ASKED))


@pytest.mark.parametrize("stdin", [b"", b"{", b"[]", b'{"prompt": 7}', b'{"prompt": "why two ramps"}'])
def test_bad_input_is_silence(kiln, stdin):
    assert kiln.is_silent(kiln.hook("user-prompt-submit", stdin))


def test_damaged_memory_of_what_was_shown_is_no_memory(kiln):
    ask(kiln, ASKED)
    [path] = (kiln.staging / "shown").iterdir()
    path.write_bytes(b'{"brief": 7')
    assert len(told(ask(kiln, ASKED))) == 1


def test_where_nothing_can_be_noted_nothing_is_shown(kiln):
    kiln.staging.mkdir()
    (kiln.staging / "shown").touch()  # a file where the folder should be
    assert kiln.is_silent(ask(kiln, ASKED))


def test_the_index_is_opened_though_nothing_may_be_written_beside_it(kiln):
    folder = kiln.home / "published" / "p1"
    folder.chmod(0o500)
    assert len(told(ask(kiln, ASKED))) == 1
    folder.chmod(0o700)


def test_a_folder_with_signs_of_an_address_is_found(client):
    odd = client.folder / "a?b#c%20d"
    shutil.copytree(client.folder / "hooks", odd / "hooks")
    other = type(client)(odd)
    publish(other, note(FIRING, "firing"), note(SALES))
    assert len(told(ask(other, ASKED))) == 1


def test_sessions_that_cortex_started_are_left_alone(kiln):
    payload = {"session_id": "s", "transcript_path": "/t/s.jsonl", "cwd": KILN, "prompt": ASKED}
    assert kiln.is_silent(
        kiln.launch("user-prompt-submit", json.dumps(payload).encode(), CORTEX_INTERNAL="1")
    )
    assert told(kiln.launch("user-prompt-submit", json.dumps(payload).encode()))


def test_a_hook_that_gets_no_end_of_its_input_gives_up(kiln):
    command = [sys.executable, "-I", "-S", str(kiln.folder / "hooks" / "hook.py"), "user-prompt-submit"]
    begun = time.monotonic()
    hook = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"CORTEX_HOME": str(kiln.home)}
    )
    assert hook.wait(timeout=20) == 0
    assert hook.stdout.read() == b"" and time.monotonic() - begun < 10
    hook.stdin.close()
    hook.stdout.close()


def test_a_search_that_takes_too_long_is_given_up(tmp_path, monkeypatch):
    policy = read_policy(None)
    path = tmp_path / prompt.INDEX
    notes = [note(f"{FIRING} {n}", str(n)) for n in range(3000)]
    write_hook_index(path, notes, settings_of(policy), stop_words_of(policy))
    monkeypatch.setattr(prompt, "PROMPT_SECONDS", 0.0)
    assert prompt.search(str(path), ASKED) == ({}, [])


def test_switched_off_for_the_project_or_by_the_environment_it_is_silent(client):
    publish(client, note(FIRING), note(SHELVES), note(SALES))
    assert told(ask(client, ASKED, CORTEX_RECALL_AT_PROMPT="off")) == []
    chosen = {"projects": {"p1": {"recall.at_prompt": False}}}
    (client.home / "hook_settings.json").write_text(json.dumps(chosen))
    assert told(ask(client, ASKED)) == []
    assert told(ask(client, ASKED, CORTEX_RECALL_AT_PROMPT="on"))
