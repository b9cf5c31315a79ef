"""`cortex doctor` says which tier is on and why, and finds what is wrong with hooks, engine and runs."""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.operations.maintain import doctor
from cortex.hooks import background, hook
from cortex.storage.machine.background_run import last_capture
from cortex.transforms.errors import ModelUnavailable
from tests.bench import NOW

INSTALLED = {"enabledPlugins": {"cortex-lake@cortex-lake": True}}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without a `cortex` that hooks could find


@pytest.fixture
def plugin(tmp_path):
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(INSTALLED))


@pytest.fixture
def engine(home, tmp_path):
    command = tmp_path / "bin" / "cortex"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    home.mkdir(exist_ok=True)
    (home / "engine").write_text(f"{command}\n")
    return command


def ran(home, **told):
    (home / "runs").mkdir(parents=True, exist_ok=True)
    (home / "runs" / "background.json").write_text(json.dumps(told))


def late(home, count):
    (home / "runs").mkdir(parents=True, exist_ok=True)
    (home / "runs" / hook.LATE_PROMPTS).write_bytes(b"." * count)


def tier(cortex):
    return cortex("doctor", "--json").json["tier"]


def check(cortex, name):
    return next(found for found in cortex("doctor", "--json").json["checks"] if found["check"] == name)


def test_hooks_that_know_no_engine_are_alone(cortex, plugin):
    told = tier(cortex)
    assert told["name"] == "hooks alone" and "know of no engine" in told["why"]
    assert "cortex run" in told["next"]


def test_with_a_key_the_hosted_embedder_does(cortex, plugin, engine, monkeypatch):
    monkeypatch.setenv("VOYAGE_API_KEY", "k")
    monkeypatch.setattr(doctor, "_model", lambda patient: "voyage")
    assert tier(cortex)["name"] == "engine and hosted embedder"


def test_without_a_model_words_are_searched(cortex, plugin, engine, monkeypatch):
    def missing(patient):
        raise ModelUnavailable("the model's file is damaged.", "Install it again.")

    monkeypatch.setattr(doctor, "_model", missing)
    told = tier(cortex)
    assert told == {
        "name": "engine, words only",
        "why": "the model's file is damaged.",
        "next": "Install it again.",
    }


def test_a_backfill_is_no_sign_of_hooks(cortex, home, engine):
    (home / "staging" / "new").mkdir(parents=True)
    assert tier(cortex)["name"] == "engine without hooks"


def test_no_python_for_the_hooks_is_an_error(cortex, plugin, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check(cortex, "hooks' python")["ok"] is False


def test_a_memo_that_is_no_path_is_passed_over(cortex, home):
    home.mkdir(exist_ok=True)
    (home / "python").write_bytes(b"\0\0\n")
    assert check(cortex, "hooks' python")["finding"].endswith("found; runs with your next session")


def test_the_python_that_the_hooks_remember_is_told(cortex, tmp_path):
    memo = tmp_path / ".claude" / "plugins" / "data" / "cortex-lake-inline" / "python"
    memo.parent.mkdir(parents=True)
    memo.write_text(f"{sys.executable}\n")
    assert check(cortex, "hooks' python")["finding"] == sys.executable


@pytest.mark.parametrize(
    ("told", "mark", "words"),
    [
        ({"exit_code": 0}, "ok", "ended well, 2 hours ago"),
        ({"exit_code": 75}, "ok", "made way for another run"),
        ({"exit_code": 12}, "!", "failed with exit code 12"),
        ({"exit_code": 1, "failures": 4, "failing_since": 0}, "!", "5 in a row since"),
    ],
)
def test_the_last_background_run_is_told(cortex, home, told, mark, words):
    at = (NOW - timedelta(hours=2)).timestamp()
    ran(home, started_at=at, ended_at=at, **told)
    found = check(cortex, "background run")
    assert found["mark"] == mark and words in found["finding"]
    assert (mark == "ok") or "background.log" in found["finding"]


def test_a_run_without_an_end_was_killed(cortex, home):
    ran(home, started_at=NOW.timestamp())
    assert check(cortex, "background run")["finding"].startswith("killed, just now")


def test_a_run_that_holds_the_lock_is_at_work(cortex, home):
    ran(home, started_at=NOW.timestamp())
    lock = background._take_lock(str(home))
    assert check(cortex, "background run") == {
        "check": "background run", "ok": True, "mark": "ok", "finding": "at work, just now",
    }  # fmt: skip
    os.close(lock)


# Status


def test_status_tells_how_the_last_background_run_went_and_where_its_output_is(cortex, home):
    at = (NOW - timedelta(hours=2)).timestamp()
    ran(home, started_at=at, ended_at=at, exit_code=12)
    said = cortex("status").out
    assert "Last background run: failed with exit code 12" in said
    assert str(home / "runs" / "background.log") in said.replace("\n", "")
    told = cortex("status", "--json").json["background"]
    assert (told["outcome"], told["failures"]) == ("failed with exit code 12", 1)
    assert Path(told["log"]) == home / "runs" / "background.log"


def test_messages_that_went_without_evidence_are_counted_with_a_next_step(cortex, home):
    assert check(cortex, "prompts")["finding"].startswith("no message went without evidence")
    for count, said in ((1, "1 message went"), (7, "7 messages went")):
        late(home, count)
        found = check(cortex, "prompts")
        assert found["finding"].startswith(
            f"{said} without evidence because looking took too long; the last "
        )
        assert "cortex config set recall.at_prompt off" in found["finding"]


def test_messages_of_long_ago_are_told_and_are_no_complaint(cortex, home):
    late(home, 3)
    os.utime(home / "runs" / hook.LATE_PROMPTS, (1, 1))
    found = check(cortex, "prompts")
    assert "3 messages went without evidence" in found["finding"] and "try:" not in found["finding"]


def test_in_somebody_elses_store_no_capture_is_seen_and_nothing_is_raised(home):
    (home / "staging" / "seen").mkdir(parents=True)
    (home / "staging").chmod(0)
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(65534)
    try:
        assert last_capture(home) is None
    finally:
        if as_root:
            os.seteuid(0)
        (home / "staging").chmod(0o700)
