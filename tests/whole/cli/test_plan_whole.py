"""`cortex plan` and `backfill --dry-run`: what a language model would be asked, before anything is."""

import json

from cortex.flows.operations.maintain import cost
from cortex.storage.model_calls import Spending
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from tests.shell import Cortex
from tests.transcripts import decisions


def test_a_plan_counts_what_waits_and_asks_nothing(cortex: Cortex, home, tmp_path):
    for name in ("s1", "s2"):
        decisions(name, cwd=f"/home/dev/{name}").write(tmp_path / "projects")  # over for months
    assert cortex("backfill", tmp_path / "projects", "--engine", "plain").code == 0
    planned = json.loads(cortex("plan", "--json").out)
    [stage, judge] = planned["stages"]
    assert (stage["stage"], stage["sessions"], stage["requests"]) == ("write", 2, 2)
    # Two thousand tokens an answer, at $.10 in and $.50 out a million; half of that in a batch.
    assert stage["output_tokens"] == 4_000
    expected = stage["input_tokens"] * 1e-7 + 4_000 * 5e-7
    assert abs(stage["usd"] - expected) < 1e-8 and abs(stage["batch_usd"] - expected / 2) < 1e-8
    # What the two sessions may bring is counted on the safe side; it is not sent in batches.
    assert (judge["stage"], judge["requests"]) == ("judge", 1) and judge["batch_usd"] == judge["usd"] > 0
    assert planned["days"] == 1
    shown = cortex("plan")
    assert "claude-haiku-5-5" in shown.out and "models.writer" in shown.err
    assert not Spending(home).path.exists()


def test_a_dry_run_says_what_the_language_model_would_cost_where_there_is_one(cortex: Cortex, home, tmp_path):
    decisions("s1").write(tmp_path / "projects")
    words = ("backfill", tmp_path / "projects", "--dry-run")
    assert "No hosted model is used" in cortex(*words).out
    ConfigFile(home).set(key_of("models.writer"), "api")
    shown = " ".join(cortex(*words).out.split())
    assert "language model would be asked about 1 session:" in shown and "in batches" in shown
    assert "in 1 request, how near their memories stand" in shown
    write, judge = json.loads(cortex(*words, "--json").out)["would_read"]["asking"]
    assert (write["stage"], write["requests"]) == ("write", 1) and write["usd"] > 0
    # The same price as of a session that has been read and waits to be asked about.
    assert cortex("backfill", tmp_path / "projects", "--engine", "plain", "--json").code == 0
    assert judge == json.loads(cortex("plan", "--json").out)["stages"][1]


def test_what_is_announced_before_reading_is_what_is_asked_after(cortex: Cortex, home, tmp_path):
    """A short session was announced with the tokens of its bytes alone: 116 for 4,890."""
    folder = tmp_path / "projects"
    for name in ("s1", "s2", "s3"):
        decisions(name, cwd=f"/home/dev/{name}").write(folder)
    # What a subagent did is read with its session, and a session of two words is not asked about.
    (folder / "x").mkdir()
    (folder / "x" / "agent-a1.jsonl").write_text(next(folder.rglob("*.jsonl")).read_text())
    ConfigFile(home).set(key_of("models.writer"), "api")
    announced = json.loads(cortex("backfill", folder, "--dry-run", "--json").out)["would_read"]["asking"][0]
    ConfigFile(home).set(key_of("models.writer"), "none")
    assert cortex("backfill", folder, "--engine", "plain", "--json").code == 0
    planned = json.loads(cortex("plan", "--json").out)["stages"][0]
    for name in ("sessions", "requests"):
        assert announced[name] == planned[name] == 3
    assert abs(announced["input_tokens"] / planned["input_tokens"] - 1) < 0.02


def test_of_many_transcripts_some_are_measured_for_all(cortex: Cortex, home, tmp_path, monkeypatch):
    for number in range(20):
        decisions(f"s{number}", cwd=f"/home/dev/p{number}").write(tmp_path / "projects")
    ConfigFile(home).set(key_of("models.writer"), "api")
    words = ("backfill", tmp_path / "projects", "--dry-run", "--json")
    with monkeypatch.context() as patch:
        patch.setattr(cost, "MAX_MEASURED", 5)
        some = json.loads(cortex(*words).out)["would_read"]["asking"][0]
    every = json.loads(cortex(*words).out)["would_read"]["asking"][0]
    assert some["requests"] == every["requests"] == 20
    assert abs(some["input_tokens"] / every["input_tokens"] - 1) < 0.1
