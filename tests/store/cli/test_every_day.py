"""What one meets every day: names that mean several things, own data, ways back, dull numbers."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from cortex.storage.settings.settings import Settings
from cortex.transforms.words.ages import age_of, ago
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


# Names that mean several projects


@pytest.mark.parametrize(
    "words",
    [
        ["recall", "when is the gauge read"],
        ["list"],
        ["brief"],
        ["today"],
        ["timeline"],
        ["stats"],
        ["export"],
    ],
)
def test_a_name_that_two_projects_have_is_refused_with_both(cortex, namesakes, words):
    answer = cortex(words[0], "--project", "gauge", *words[1:])
    assert answer.code == 2 and "'gauge' means 2 projects" in answer.err
    assert "north/gauge" in answer.err and "south/gauge" in answer.err


def test_the_name_that_tells_them_apart_means_one(cortex, namesakes):
    out = cortex("list", "--project", "north/gauge").out
    assert "The north gauge" in out and "The south gauge" not in out


# Settings


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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("monitor.tokenThreshold", "statusline.warn_percent"),
        ("archive.autoOnCompact", "captured at every compaction"),
        ("lifecycle.archive_grace_days", "policy/thresholds.csv"),
        ("brief.tokns", "Did you mean brief.tokens?"),
    ],
)
def test_a_setting_of_another_name_leads_to_the_one_here(cortex, name, meant):
    answer = cortex("config", "set", name, "7")
    assert answer.code == 2 and meant in answer.err and len(answer.err) < 400


@pytest.mark.parametrize(
    ("word", "meant"), [("extract", "run"), ("generate", "brief"), ("lifecycle", "nightly"), ("save", "run")]
)
def test_a_command_of_another_name_leads_to_the_one_here(cortex, word, meant):
    assert f"Did you mean {meant}" in cortex(word).err


def test_a_negative_number_is_a_value_that_is_refused_as_any_other(cortex):
    answer = cortex("config", "set", "brief.tokens", "-5")
    assert answer.code == 2 and "Give a whole number from 0 to 3000" in answer.err


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


# Own data out and in


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


def test_an_export_that_is_to_be_restored_is_pointed_to_import(cortex, samples, tmp_path):
    cortex("export", tmp_path / "own.json")
    answer = cortex("restore", tmp_path / "own.json")
    assert answer.code == 2 and f"cortex import {tmp_path / 'own.json'}" in answer.err


# Ways back, and where was looked


def test_words_that_no_memory_holds_are_answered_with_where_they_were_looked_for(cortex, samples):
    assert "belongs to none; name one with --project" in cortex("forget", "purple walrus").err
    assert (
        "no memory of tidepool or for all" in cortex("forget", "--project", "tidepool", "purple walrus").err
    )


def test_who_replaces_or_pins_is_told_the_way_back(cortex, samples):
    rows = cortex("list", "--project", "tidepool", "--type", "decision", "--json").json["memories"]
    old, new = (row["memory_id"] for row in rows[:2])
    assert f"Undo: cortex supersede --undo {old[:12]}" in cortex("supersede", old, new).err
    assert f"Undo: cortex pin --off {new[:12]}" in cortex("pin", new).err


def test_a_store_that_is_not_encrypted_says_so(cortex, samples):
    assert cortex("decrypt").out == "The store is not encrypted: nothing to do.\n"


# One session at once


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


# Dull numbers


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(59, "just now"), (60, "1 min ago"), (29 * 60, "29 min ago"), (3_600, "1 hour ago")],
)
def test_just_now_is_less_than_a_minute(seconds, words):
    now = datetime(2026, 9, 1, 12, tzinfo=UTC)
    assert ago(now - timedelta(seconds=seconds), now) == words
    assert age_of(now - timedelta(seconds=seconds), now) == words.removesuffix(" ago")


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


def test_transcripts_in_a_linked_project_folder_are_found_once(cortex, tmp_path):
    real, folder = tmp_path / "disk" / "kiln", tmp_path / "projects"
    real.mkdir(parents=True)
    folder.mkdir()
    path = next(SAMPLES.rglob("*.jsonl"))
    (real / path.name).write_bytes(path.read_bytes())
    (folder / "kiln").symlink_to(real)
    (folder / "all").symlink_to(folder)
    assert cortex("backfill", folder, "--dry-run", "--json").json["would_read"]["transcripts"] == 1
