"""Backfill finds every assistant's transcripts, says whose they are, and runs take in what grows."""

import pytest

from tests.other_assistants import Codex, codex_decisions, gemini_decisions
from tests.transcripts import decisions, lines


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_a_backfill_finds_and_lists_each_assistants_transcripts(cortex, tmp_path):
    decisions().write(tmp_path / ".claude" / "projects")
    codex_decisions().write(tmp_path)
    gemini_decisions().write(tmp_path, as_lines=True, name="kelp")
    told = cortex("backfill", "--dry-run").out
    assert "Would read 3 transcripts" in told
    for name in ("Claude Code", "Codex CLI", "Gemini CLI"):
        assert f"{name}: 1 transcript," in told
    planned = cortex("backfill", "--dry-run", "--json").json["would_read"]
    assert sum(each["bytes"] for each in planned["by_assistant"].values()) == planned["bytes"]
    report = cortex("backfill", "--engine", "plain", "--json").json
    assert (report["transcripts"], report["set_aside"]) == (3, [])
    found = cortex("recall", "--all-projects", "--json", "tide table counts hours").json["results"]
    files = {each["file"] for result in found for each in result["evidence"]}
    assert any("/.codex/sessions/" in file for file in files)
    assert any("/.gemini/tmp/" in file for file in files)


def test_a_backfill_needs_no_claude_code(cortex, tmp_path):
    codex_decisions().write(tmp_path)
    assert cortex("backfill", "--engine", "plain", "--json").json["transcripts"] == 1


def test_a_machine_without_any_assistant_is_told_so(cortex):
    answer = cortex("backfill")
    assert answer.code != 0
    assert "Name the folder" in answer.err


@pytest.mark.parametrize("flow", ["run", "nightly"])
def test_a_run_takes_in_what_grew_after_a_backfill(cortex, tmp_path, flow):
    talk = Codex().user("Sort the imports of the exporter, and keep those of its tests as they are.")
    path = talk.write(tmp_path)
    assert cortex(flow, "--engine", "plain", "--json").json["transcripts"] == 0
    cortex("backfill", "--engine", "plain")
    path.write_bytes(lines(talk.assistant("[MEMORY: pattern] Imports are sorted by ruff.").records))
    assert cortex(flow, "--engine", "plain", "--json").json["transcripts"] == 1
    assert "Imports are sorted by ruff" in cortex("recall", "--all-projects", "sorted imports").out
