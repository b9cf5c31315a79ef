"""The laws of whole runs: twice equals once, cuts and order do not matter, copies and rewinds count once."""

import os
import subprocess
from dataclasses import replace

from tests.bench import NOW, fixed_state, leftovers
from tests.transcripts import decisions


def test_a_run_over_an_empty_store_makes_no_rows(bench):
    report = bench.run()
    assert not any(report.rows.values())
    before = fixed_state(bench.home)
    bench.run()
    assert fixed_state(bench.home) == before


def test_a_transcript_of_an_excluded_project_is_not_kept(bench):
    decisions().write(bench.projects)
    (bench.home).mkdir()
    (bench.home / "config.toml").write_text('[capture]\nexcluded_projects = ["/home/dev/kelp"]\n')
    from cortex.flows.engines import runs
    from cortex.storage.settings.settings import load_settings

    bench.stage()
    report = runs.execute("ingest", replace(bench.context, settings=load_settings(bench.home)))
    assert (report.transcripts, report.rows["turns"], leftovers(bench.home)) == (0, 0, [])


def test_at_most_a_hundred_reports_are_kept(bench):
    from datetime import timedelta

    from cortex.flows.run_report import RunReport
    from cortex.storage.published.reports import keep_report, last_report

    for minutes in range(130):
        keep_report(bench.store.runs, RunReport("ingest", "plain", NOW + timedelta(minutes=minutes)))
    kept = sorted((bench.store.runs / "reports").iterdir())
    assert len(kept) == 100
    newest = last_report(bench.store.runs)
    assert newest is not None and newest["started_at"] == (NOW + timedelta(minutes=129)).isoformat()


def test_what_a_killed_remember_left_half_written_is_removed(bench):
    journal = bench.home / "staging" / "journal"
    journal.mkdir(parents=True)
    dead = subprocess.Popen(["true"])
    dead.wait()
    (journal / f".entry.json.{dead.pid}.part").write_text("{")
    (journal / f".entry.json.{os.getpid()}.part").write_text("{")
    bench.run()
    assert [path.name for path in journal.iterdir()] == [f".entry.json.{os.getpid()}.part"]
