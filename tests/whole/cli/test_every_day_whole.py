"""What one meets every day and takes whole runs: names that mean several things, own data, ways back."""

import json
import os
import subprocess
import sys

import pytest

from cortex.storage.settings.settings import Settings
from tests.bench import SAMPLES


def memory_named(cortex, words, project="tidepool"):
    rows = cortex("list", "--project", project, "--limit", "200", "--json").json["memories"]
    return next(row["memory_id"] for row in rows if words in row["text"])


@pytest.fixture
def namesakes(cortex, samples, tmp_path):
    """Two more projects, both in a folder called `gauge`."""
    for place in ("north", "south"):
        folder = tmp_path / place / "gauge"
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        subprocess.run(
            ["git", "-C", str(folder), "remote", "add", "origin", f"https://example.org/{place}/gauge"],
            check=True,
        )
        os.chdir(folder)
        cortex("remember", "--type", "decision", f"The {place} gauge is read at noon.")
    os.chdir(tmp_path)
    return tmp_path


def test_a_name_that_two_projects_have_is_refused_with_both_and_one_that_tells_them_apart_means_one(
    cortex, namesakes
):
    for words in (
        ["recall", "when is the gauge read"],
        ["list"],
        ["brief"],
        ["today"],
        ["timeline"],
        ["stats"],
        ["export"],
    ):
        answer = cortex(words[0], "--project", "gauge", *words[1:])
        assert answer.code == 2 and "'gauge' means 2 projects" in answer.err, words
        assert "north/gauge" in answer.err and "south/gauge" in answer.err, words
    out = cortex("list", "--project", "north/gauge").out
    assert "The north gauge" in out and "The south gauge" not in out


def test_answers_name_each_project_by_what_tells_it_from_its_namesake(cortex, namesakes):
    gauge = memory_named(cortex, "south", "south/gauge")
    for words in (
        ["recall", "--all-projects", "when is the south gauge read"],
        ["show", gauge],
        ["review", "--project", "south/gauge"],
        ["remember", "--project", "south/gauge", "The south gauge is made of brass."],
    ):
        assert "south/gauge" in cortex(*words).out, words
    assert cortex("review").out == "Nothing to settle in 3 projects.\n"


def test_projects_to_share_are_chosen_by_name(cortex, namesakes):
    subprocess.run(
        ["git", "-C", str(namesakes / "north" / "gauge"), "config", "user.name", "Ada"], check=True
    )
    cortex("config", "set", "share.place", f"file://{namesakes}/team")
    assert cortex("config", "set", "share.projects", "north/gauge").code == 0
    shared = cortex("push").out
    assert "gauge" in shared and "tidepool" not in shared
    answer = cortex("config", "set", "share.projects", "nonsense")
    assert answer.code == 3 and "no project is called 'nonsense'" in answer.err


def test_without_the_local_model_nothing_is_embedded_and_words_still_find(cortex, tmp_path, monkeypatch):
    from cortex.flows.embedders import embedder_in_force
    from tests.present import embedding_with

    assert cortex("config", "set", "embed.local", "false").code == 0
    with embedding_with(embedder_in_force):
        cortex("backfill", SAMPLES)
        report = cortex("status", "--json").json["last_run"]
        assert report["rows"]["vectors"] == 0 and report["rows"]["passages"] > 0
        assert "SQLite" in cortex("recall", "--project", "tidepool", "why SQLite and not Postgres?").out
        assert "off: search goes by words" in cortex("doctor").out
    assert embedder_in_force(Settings(tmp_path)) is not None


def test_an_own_export_never_doubles_what_the_store_has(cortex, samples, tmp_path, monkeypatch):
    """Also where the key that signed it is gone, as on a machine where the store was restored."""
    name = memory_named(cortex, "SQLite")
    cortex("edit", name, "Readings stay in SQLite, as edited by hand.")
    cortex("export", tmp_path / "own.json")
    count = cortex("list", "--all-projects", "--json").json["total"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another machine"))
    answer = cortex("import", tmp_path / "own.json", "--json").json
    assert answer["imported"] == 0 and answer["known"] > 10
    assert cortex("list", "--all-projects", "--json").json["total"] == count


def test_an_own_export_on_a_new_machine_is_pointed_to_the_way_that_restores_it(
    cortex, samples, tmp_path, monkeypatch
):
    cortex("export", tmp_path / "own.json")
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "new store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another machine"))
    answer = cortex("import", tmp_path / "own.json")
    assert f"cortex import {tmp_path / 'own.json'} --own" in answer.err
    assert cortex("import", tmp_path / "own.json", "--own", "--json").json["imported"] > 10


def test_who_replaces_or_pins_is_told_the_way_back(cortex, samples):
    rows = cortex("list", "--project", "tidepool", "--type", "decision", "--json").json["memories"]
    old, new = (row["memory_id"] for row in rows[:2])
    assert f"Undo: cortex supersede --undo {old[:12]}" in cortex("supersede", old, new).err
    assert f"Undo: cortex pin --off {new[:12]}" in cortex("pin", new).err


def test_a_session_is_read_at_once_by_its_id(cortex, tmp_path, home):
    folder = tmp_path / ".claude" / "projects" / "-home-ada-kiln"
    folder.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "5e551on0-1111",
        "cwd": "/home/ada/kiln",
        "timestamp": "2026-10-01T09:00:00Z",
        "message": {"role": "user", "content": "Never fire the celadon glaze in one ramp, it crawls."},
    }
    (folder / "5e551on0-1111.jsonl").write_text(json.dumps(record) + "\n")
    (folder / "another-2222.jsonl").write_text(json.dumps({**record, "sessionId": "another-2222"}) + "\n")
    assert cortex("run", "--session", "5e551on0").code == 0
    sessions = cortex("timeline", "--all-projects", "--json").json["sessions"]
    assert [row["session_id"] for row in sessions] == ["5e551on0-1111"]
    answer = cortex("run", "--session", "nobody")
    assert answer.code == 5 and "no transcript is of a session 'nobody'" in answer.err


def test_a_report_counts_one_transcript_and_has_no_line_of_zeros(cortex, tmp_path):
    path = next(SAMPLES.rglob("*.jsonl"))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / path.name).write_bytes(path.read_bytes())
    out = cortex("backfill", tmp_path / "one").out
    assert "1 transcript, " in out and "audit" not in out


def test_a_reader_that_has_seen_enough_stops_no_run(tmp_path):
    environment = {**os.environ, "CORTEX_HOME": str(tmp_path / "store"), "HOME": str(tmp_path)}
    program = [sys.executable, "-m", "cortex", "backfill", str(SAMPLES)]
    run = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    run.stdout.close()
    assert run.wait(timeout=300) == 0
    assert (tmp_path / "store" / "published" / "memory.duckdb").exists()
