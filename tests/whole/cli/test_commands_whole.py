"""Each command as its user meets it: help, text, JSON, exit codes, the next step in every error."""

from pathlib import Path

import pytest

from cortex.cli.main import main
from tests.bench import SAMPLES
from tests.process.cli.test_commands import error_of
from tests.transcripts import KELP, decisions


def test_backfill_prints_the_run_report_as_json_and_nothing_else(cortex, home):
    answer = cortex("backfill", SAMPLES, "--engine", "plain", "--json")
    assert answer.code == 0
    report = answer.json
    assert set(report) == {
        "flow", "engine", "started_at", "seconds", "transcripts", "transcript_bytes", "stages", "rows",
        "new_rows", "set_aside", "left_out", "notes", "breaches",
    }  # fmt: skip
    assert (report["flow"], report["engine"], report["transcripts"]) == ("backfill", "plain", 7)
    assert [stage["stage"] for stage in report["stages"]] == [
        "erase", "extract", "audit", "guard", "embed", "link", "decay", "consolidate", "render",
    ]  # fmt: skip
    assert {"rows_in", "rows_out", "seconds", "note", "stage"} == set(report["stages"][0])
    [line] = report["set_aside"]
    assert Path(line["file"]).is_file() and (line["line"], line["reason"]) == (21, "not JSON")
    assert list((home / "runs" / "reports").iterdir())


def test_backfill_prints_tables_for_people(cortex):
    answer = cortex("backfill", SAMPLES, "--engine", "plain")
    assert answer.code == 0
    for told in ("7 transcripts", "extract", "render", "Store now: turns", "Quarantined: 1", "not JSON"):
        assert told in answer.out


def test_backfill_without_a_path_reads_the_assistants_own_folder(cortex, tmp_path):
    answer = cortex("backfill", "--engine", "plain")
    assert (answer.code, "CORTEX_E_NOT_FOUND" in answer.err) == (5, True)
    decisions().write(tmp_path / ".claude" / "projects")
    assert cortex("backfill", "--engine", "plain", "--json").json["transcripts"] == 1


def test_recall_that_finds_nothing_says_where_else_to_look(cortex, tmp_path, monkeypatch):
    cortex("remember", "Levels are millimetres.")
    answer = cortex("recall", "zzzyx", "--json")
    assert (answer.code, answer.json) == (0, {"results": [], "limits": None})
    answer = cortex("recall", "zzzyx")
    assert (answer.code, answer.out) == (0, "") and "--all-projects" in answer.err


def test_a_folder_of_no_project_searches_all_and_says_so(cortex, samples, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    searched = "This folder belongs to no project: searched all.\n"
    answer = cortex("recall", "why SQLite?")
    assert "tidepool" in answer.out and answer.err == searched
    assert {row["project"] for row in cortex("recall", "why SQLite?", "--json").json["results"]} >= {
        "tidepool"
    }
    assert cortex("recall", "zzzyx").err == searched + "Nothing found in any project.\n"
    assert cortex("recall", "why SQLite?", "--project", "tidepool").err == ""
    assert cortex("recall", "why SQLite?", "--all-projects").err == ""
    answer = cortex("infer", "SQLite")
    assert answer.out and answer.err.startswith(searched)
    answer = cortex("reflect", "why SQLite?")
    assert "SQLite" in answer.out and answer.err.startswith(searched)


@pytest.mark.parametrize("word", ["remember", "learn"])
def test_a_fact_of_a_new_folder_says_which_project_it_makes(cortex, tmp_path, monkeypatch, word):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    answer = cortex(word, "The gauges write their levels in millimetres.")
    assert answer.err.startswith("This folder is now the project elsewhere; --global is for all projects, ")
    assert cortex(word, "Every store of a gauge is a SQLite file.").err == ""
    (tmp_path / "third").mkdir()
    monkeypatch.chdir(tmp_path / "third")
    assert cortex(word, "Use tabs in Makefiles of gauges.", "--global").err == ""


def test_remember_then_forget_by_the_id_that_was_printed(cortex, samples):
    told = cortex("remember", "Levels", "are", "millimetres.", "--project", "tidepool", "--json").json
    assert {"id", "project", "searchable", "outcome"} <= set(told) and told["searchable"] is True
    assert "Levels are millimetres." in cortex("recall", "millimetres", "--project", "tidepool").out
    gone = cortex("forget", told["id"][:12], "--json").json
    assert gone == {
        "id": told["id"],
        "forgotten": True,
        "applied": True,
        "went_with_it": [],
        "copies_left": [],
        "copies_reached": gone["copies_reached"],
    }
    assert len(gone["copies_reached"]) == 1 and str(samples) in gone["copies_reached"][0]
    assert "Levels are millimetres." not in cortex("recall", "millimetres", "--project", "tidepool").out


def test_a_project_is_known_by_its_folder(cortex, tmp_path, monkeypatch):
    decisions(cwd=str(tmp_path / "kelp")).write(tmp_path / "t")
    (tmp_path / "kelp" / "docs").mkdir(parents=True)
    cortex("backfill", tmp_path / "t", "--engine", "plain", "--json")
    monkeypatch.chdir(tmp_path / "kelp" / "docs")
    assert "kelp" in cortex("recall", "millimetres").out
    assert "millimetres" in cortex("brief").out
    assert KELP not in cortex("status").out


def test_recall_shows_what_is_linked_to_the_results(cortex, home):
    cortex("remember", "--type", "decision", "The poller in src/poll_gauge.py retries three times.")
    cortex("remember", "--type", "gotcha", "src/poll_gauge.py drops readings when the clock steps back.")
    plain = cortex("recall", "retries three times", "--limit", "1", "--json").json
    near = cortex("recall", "retries three times", "--limit", "1", "--related", "1", "--json").json
    assert "related" not in plain and near["results"] == plain["results"]
    assert [memory["text"][:17] for memory in near["related"]] == ["src/poll_gauge.py"]
    assert "Related:" in cortex("recall", "retries three times", "--limit", "1", "--related", "1").out


def test_a_typed_fact_is_forgotten_without_a_word_of_transcripts_that_never_had_it(cortex, monkeypatch):
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)
    cortex("remember", "Indent with tabs, not spaces.")
    question = cortex("forget", "tabs", "spaces")
    assert question.code == 2 and "not spaces.\nTo forget it: cortex forget " in question.err
    gone = cortex("forget", "--yes", "tabs", "spaces")
    assert gone.code == 0 and "transcript" not in gone.err and "Backups made before" in gone.err


def test_a_project_without_sessions_has_statistics_without_a_gap(cortex):
    cortex("remember", "Levels are millimetres.")
    assert "sessions: none\n" in cortex("stats").err


def test_projects_are_listed_by_that_word_too_a_folder_on_one_line(cortex, tmp_path, monkeypatch):
    folder = tmp_path / "odd\nname"
    folder.mkdir()
    monkeypatch.chdir(folder)
    cortex("remember", "Levels are millimetres.")
    answer = cortex("projects", "list")
    assert answer.code == 0 and answer.out == cortex("projects").out
    assert [line for line in answer.out.splitlines() if line.startswith("    ")] == [
        f"    {tmp_path}/odd name"
    ]
    assert cortex("projects", "list", "--json").json == cortex("projects", "--json").json


def test_recall_takes_days_as_people_say_them(cortex, samples):
    for words in (
        ["--since", "3 weeks"],
        ["--since", "3w", "--until", "yesterday"],
        ["--as-of", "yesterday"],
    ):
        assert cortex("recall", "SQLite", "--project", "tidepool", *words).code == 0


@pytest.mark.parametrize("option", ["--since", "--until", "--as-of"])
def test_what_is_no_day_is_refused_before_the_store_is_opened(cortex, option):
    answer = cortex("recall", "SQLite", option, "3 moons")  # an empty store would be said first
    assert answer.code == 2 and f"Use YYYY-MM-DD, yesterday, 10d or 3w: {option} 2026-09-14" in answer.err


def test_a_command_without_its_words_prints_the_help_alone(capsys):
    with pytest.raises(SystemExit) as left:
        main([])
    err = capsys.readouterr().err
    assert left.value.code == 2 and "Usage:" in err and "CORTEX_E_" not in err


def test_words_of_two_facts_name_no_one_memory(cortex, samples):
    for fact in ("Levels as integers save half the disk.", "Levels as integers are read by the old gauge."):
        assert cortex("remember", fact, "--project", "tidepool").code == 0
    answer = cortex("forget", "levels as integers", "--project", "tidepool", "--yes", "--json")
    assert answer.code == 2 and "more than one memory" in error_of(answer)["problem"]
    listed = error_of(answer)["problem"]
    assert "half the disk" in listed and "old gauge" in listed
    assert "integer millimetres" in cortex("recall", "levels as integers", "--project", "tidepool").out
