"""Each command as its user meets it: help, text, JSON, exit codes, the next step in every error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.cli.main import main
from cortex.storage.remote.store_lease import lease
from tests.bench import SAMPLES

ROOT = Path(__file__).parents[3]
COMMANDS = sorted(main.commands)
HEAVY = ("pyarrow", "duckdb", "lancedb", "prefect", "polars", "numpy", "rich", "onnxruntime", "orjson")


def error_of(answer):
    """The error object of a command that was asked for JSON."""
    assert set(answer.json) >= {"error"}
    error = answer.json["error"]
    assert set(error) == {"code", "problem", "next_step", "retryable"}
    assert error["code"].startswith("CORTEX_E") and error["next_step"]
    return error


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_what_it_does(cortex, command):
    answer = cortex(command, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: cortex {command}") or f" {command} " in answer.out.splitlines()[0]
    told = [line.strip() for line in answer.out.splitlines() if line.strip()]
    assert told[1].endswith((".", ":")) or len(told[1]) > 30


def test_what_is_kept_is_for_its_owners_eyes_alone(cortex, tmp_path, monkeypatch):
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "store"))
    before = os.umask(0o022)
    try:
        cortex("config", "set", "brief.tokens", "900")
    finally:
        os.umask(before)
    made = [tmp_path / "store", *(tmp_path / "store").rglob("*")]
    assert len(made) > 1 and [path for path in made if path.stat().st_mode & 0o077] == []


def test_the_list_of_commands_is_on_the_first_page(cortex):
    answer = cortex("--help")
    assert answer.code == 0
    assert all(f"\n  {command} " in answer.out for command in COMMANDS)
    assert "CORTEX_HOME" in answer.out


@pytest.mark.parametrize("words", [["--help"], ["recall", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words):
    program = (
        "import sys, json\n"
        "from cortex.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    told = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(told.stderr.splitlines()[-1])}
    assert loaded.isdisjoint(HEAVY)


def test_backfill_dry_run_only_says_what_it_would_read(cortex, home):
    answer = cortex("backfill", SAMPLES, "--dry-run", "--json")
    plan = answer.json["would_read"]
    assert (answer.code, plan["transcripts"], plan["read_before"], plan["cost_usd"]) == (0, 7, 0, 0.0)
    assert not home.exists()
    assert "7 transcripts" in cortex("backfill", SAMPLES, "--dry-run").out


def test_backfill_dry_run_tells_what_a_hosted_model_would_cost(cortex, home, monkeypatch):
    monkeypatch.setenv("CORTEX_EMBED_VOYAGE_API_KEY", "a-key")
    plan = cortex("backfill", SAMPLES, "--dry-run", "--json").json["would_read"]
    assert plan["model_tokens"] == round(plan["bytes"] / 1e6 * 11_600) > 0
    assert plan["cost_usd"] == round(plan["model_tokens"] / 1e6 * 0.02, 4)
    assert f"{plan['model_tokens']:,} tokens" in cortex("backfill", SAMPLES, "--dry-run").out


def test_run_and_nightly_take_in_what_is_staged(cortex, samples):
    for flow, command in (("ingest", "run"), ("nightly", "nightly")):
        report = cortex(command, "--engine", "plain", "--json").json
        assert (report["flow"], report["transcripts"], report["new_rows"]) == (flow, 0, {})


def test_recall_prints_the_fields_that_programs_rely_on(cortex, samples):
    answer = cortex("recall", "why SQLite", "--project", "tidepool", "--limit", "3", "--json")
    assert (answer.code, answer.err) == (0, "")
    results = answer.json["results"]
    assert [result["rank"] for result in results] == [1, 2, 3]
    assert set(results[0]) == {
        "id", "rank", "score", "kind", "memory_type", "text", "project", "project_id", "confidence", "trust",
        "speaker", "status", "created_at", "evidence", "doubt", "code", "replaces", "statement",
        "passage", "nearby", "why", "chosen", "rejected",
    }  # fmt: skip
    first = results[0]
    assert "SQLite" in first["text"] and first["project"] == "tidepool"
    assert 0 <= first["confidence"] <= 1 and first["kind"] in ("memory", "turn")
    [*_, evidence] = first["evidence"]
    assert set(evidence) == {"session", "session_number", "file", "lines"}
    transcript = Path(evidence["file"]).read_bytes().split(b"\n")
    assert all(evidence["session"].encode() in transcript[line - 1] for line in evidence["lines"])


def test_recall_names_source_age_and_confidence(cortex, samples):
    answer = cortex("recall", "--project", "tidepool", "--limit", "1", "why", "SQLite")
    assert answer.code == 0
    for told in (" 1. ", "tidepool", " old", "session ", ".jsonl:"):
        assert told in answer.out


def test_recall_on_an_empty_store_says_how_to_fill_it(cortex):
    answer = cortex("recall", "anything", "--json")
    assert (answer.code, error_of(answer)["code"]) == (5, "CORTEX_E_NOT_FOUND")
    assert "cortex backfill" in cortex("recall", "anything").err


@pytest.mark.parametrize(
    "command", [["recall", "why"], ["remember", "Use pnpm"], ["forget", "why"], ["brief"]]
)
def test_an_unknown_project_names_the_known_ones(cortex, samples, command):
    answer = cortex(*command, "--project", "nowhere", "--json")
    error = error_of(answer)
    assert (answer.code, error["code"]) == (3, "CORTEX_E_UNKNOWN_PROJECT")
    assert "tidepool" in error["next_step"] and "nowhere" in error["problem"]
    assert "[CORTEX_E_UNKNOWN_PROJECT]" in answer.err


def test_an_unknown_memory_type_names_the_allowed_ones(cortex, home):
    answer = cortex("remember", "x", "--type", "idea", "--json")
    error = error_of(answer)
    assert (answer.code, error["code"]) == (4, "CORTEX_E_UNKNOWN_VALUE")
    assert "gotcha" in error["next_step"] and not home.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["recall", "x", "--limit", "0", "--json"],
        ["recall", "--json"],
        ["recall", "x", "--project", "p", "--all-projects", "--json"],
        ["nightly", "--engine", "magic", "--json"],
        ["status", "--jsno", "--json"],
    ],
)
def test_words_that_are_off_are_a_usage_error_also_as_json(cortex, samples, words):
    answer = cortex(*words)
    assert (answer.code, error_of(answer)["code"]) == (2, "CORTEX_E_USAGE")
    assert answer.err


def test_an_unknown_command_is_a_usage_error(cortex):
    answer = cortex("remembre", "x")
    assert answer.code == 2 and "remembre" in answer.err


def test_remember_says_what_it_kept_and_where(cortex):
    answer = cortex("remember", "--global", "--type", "pattern", "Commit messages are imperative.")
    assert answer.code == 0 and "pattern" in answer.out and "global" in answer.out
    assert "global" in cortex("status").out


def test_brief_prints_what_the_assistant_is_handed(cortex, samples):
    answer = cortex("brief", "--project", "tidepool")
    assert answer.code == 0 and "raw payloads" in answer.out
    [brief] = cortex("brief", "--project", "tidepool", "--json").json["briefs"]
    assert brief["text"] == answer.out


def test_brief_of_a_folder_without_one_names_the_known_projects(cortex, samples):
    answer = cortex("brief")
    assert (answer.code, answer.out) == (0, "") and "tidepool" in answer.err
    assert cortex("brief", "--json").json == {"briefs": []}


def test_status_counts_what_is_there(cortex, samples):
    told = cortex("status", "--json").json
    assert set(told) == {
        "home", "bytes", "waiting", "outdated", "projects", "last_run", "background", "embedding", "writer",
        "pending_loss", "retention", "writing", "progress", "is_ready",
    }  # fmt: skip
    [project] = [row for row in told["projects"] if row["name"] == "tidepool"]
    assert project["memories"] > 10 and told["waiting"] == 0 and told["last_run"]["flow"] == "backfill"
    assert "tidepool" in cortex("status").out


def test_status_of_an_empty_store_says_where_to_begin(cortex, home):
    answer = cortex("status")
    assert answer.code == 0 and "Start with: cortex setup" in answer.out
    assert cortex("status", "--json").json["projects"] == []
    assert not home.exists()


def test_sql_answers_over_every_table(cortex, samples):
    query = "select memory_type, count(*), avg(confidence) from memories group by 1 order by 1"
    told = cortex("sql", query, "--json").json
    assert told["columns"][0] == "memory_type" and "decision" in [row[0] for row in told["rows"]]
    for table in ("turns", "events", "memories", "edges", "journal"):
        [[count]] = cortex("sql", f"select count(*) from {table}", "--json").json["rows"]
        assert count > 0
    assert "decision" in cortex("sql", query).out


@pytest.mark.parametrize(
    "query",
    [
        "select nonsense from memories",
        "selekt 1",
        "select cast('words' as integer)",
        "",
        "delete from memories",
        "create table mine (x integer)",
        "copy memories to 'out.csv'",
        "attach 'other.db'",
        "select 1; drop view memories",
    ],
)
def test_sql_that_is_wrong_or_would_write_is_a_usage_error(cortex, samples, query):
    answer = cortex("sql", query, "--json")
    assert (answer.code, error_of(answer)["code"]) == (2, "CORTEX_E_USAGE")
    assert list(Path.cwd().iterdir()) == []


def test_sql_before_any_run_says_how_to_make_the_database(cortex):
    answer = cortex("sql", "select 1", "--json")
    assert (answer.code, error_of(answer)["code"]) == (5, "CORTEX_E_NOT_FOUND")


def test_any_duckdb_client_reads_the_published_file(samples):
    import duckdb

    with duckdb.connect(str(samples / "published" / "memory.duckdb"), read_only=True) as database:
        assert database.sql("select count(*) > 10 from memories").fetchall() == [(True,)]


def test_doctor_checks_everything(cortex):
    answer = cortex("doctor", "--json")
    checks = answer.json["checks"]
    assert answer.code == 0 and all(check["ok"] for check in checks)
    assert {"python", "libraries", "home", "store", "embedding model"} <= {check["check"] for check in checks}


def test_doctor_finds_a_home_that_is_a_file(cortex, home):
    home.write_text("a file")
    answer = cortex("doctor", "--json")
    assert answer.code == 1
    assert {check["check"] for check in answer.json["checks"] if not check["ok"]} == {"home"}


def test_a_run_that_meets_another_leaves_with_75(cortex, home):
    with lease(home):
        answer = cortex("run", "--engine", "plain", "--json")
    error = error_of(answer)
    assert (answer.code, error["code"], error["retryable"]) == (75, "CORTEX_E_BUSY", True)


def test_a_broken_config_is_named(cortex, home):
    home.mkdir()
    (home / "config.toml").write_text("[brief\n")
    answer = cortex("status", "--json")
    assert answer.code == 2 and "config.toml" in error_of(answer)["problem"]
