"""`cortex doctor` says which tier is on and why, and finds what is wrong with hooks, engine and runs."""

import os
import time
from datetime import timedelta

from cortex.hooks import ticket
from tests.bench import NOW
from tests.store.cli.test_doctor import _no_key, check, engine, plugin, tier  # noqa: F401

# Tiers


def test_with_no_hook_anywhere_the_next_step_is_to_install_them(cortex, engine):
    assert tier(cortex)["name"] == "engine without hooks"
    assert "cortex setup" in tier(cortex)["next"]


def test_an_engine_that_is_gone_leaves_the_hooks_alone(cortex, plugin, engine):
    engine.unlink()
    assert tier(cortex)["name"] == "hooks alone" and "gone" in tier(cortex)["why"]
    assert check(cortex, "engine")["mark"] == "!!" and cortex("doctor").code == 1


def test_a_command_on_the_path_is_the_hooks_engine(cortex, plugin, monkeypatch, tmp_path):
    command = tmp_path / "bin" / "cortex"
    command.parent.mkdir()
    command.write_text("#!/usr/bin/python3\nfrom cortex.cli.main import main\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=":")
    assert tier(cortex)["name"] == "engine" and check(cortex, "engine")["finding"] == str(command)


def test_with_an_engine_the_local_model_embeds(cortex, plugin, engine):
    assert tier(cortex)["name"] == "engine" and "local model" in tier(cortex)["why"]


def test_the_text_begins_with_the_tier_and_its_next_step(cortex, plugin, engine):
    first, second, *_ = cortex("doctor").out.split("\n")
    assert first.startswith("Tier: engine. ") and second.startswith("Next: ")


# Checks


def test_hooks_of_a_session_with_a_plugin_folder_are_heard_of(cortex, home, engine):
    (home / "staging" / "seen").mkdir(parents=True)
    at = (NOW - timedelta(hours=3)).timestamp()
    os.utime(home / "staging" / "seen", (at, at))
    assert tier(cortex)["name"] == "engine"
    assert "last heard of 3 hours ago" in check(cortex, "hooks")["finding"]


def test_tickets_that_outlive_a_start_are_told(cortex, home, engine):
    (home / "staging" / "new").mkdir(parents=True)
    (home / "staging" / "seen").mkdir()
    stamp = ticket.stamp(int((NOW - timedelta(days=3)).timestamp() * 1e9))
    (home / "staging" / "new" / f"{stamp}-stop-0b6f-1_2.json").write_text("{}")
    os.utime(home / "staging" / "seen", (time.time(), time.time()))
    found = check(cortex, "staging")
    assert found["mark"] == "!" and "3 days ago" in found["finding"] and "cortex run" in found["finding"]


def test_a_fresh_complaint_of_a_hook_is_worth_a_look(cortex, home):
    log = home / "runs" / "hooks.log"
    log.parent.mkdir(parents=True)
    log.write_text("20261101T000000Z stop OSError\n")
    for days, mark in ((1, "!"), (30, "ok")):
        at = (NOW - timedelta(days=days)).timestamp()
        os.utime(log, (at, at))
        assert check(cortex, "hooks' log")["mark"] == mark
