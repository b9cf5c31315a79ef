"""Ageing over whole runs: a project's clock stands still while nobody works on it (spec 8.1, 8.2)."""

import json
import shutil
from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare
from tests.bench import NOW, contents, difference, fixed_state
from tests.rows import entry
from tests.transcripts import START, Talk, decisions

# Whole runs, two seconds each: together too long for the quick suite.

PLAN = "Move the tide tables into one file."
DAY = timedelta(days=1)


def worked_on(bench, *days, cwd="/home/dev/kelp"):
    """Write a session that says nothing to keep for each of some days after START."""
    for number in days:
        talk = Talk(f"day{number}{cwd}", cwd=cwd, start=START + number * DAY)
        talk.user("Is the build green today?").assistant("Yes, all checks are green.").write(bench.projects)


def faded(bench):
    """Write a session whose progress fades within two weeks, and work on for 30 days."""
    Talk("first").user("Go.").assistant(f"[MEMORY: progress] {PLAN}").write(bench.projects)
    worked_on(bench, *range(1, 30))


def status_of(bench, text=PLAN):
    return {row["text"]: row["status"] for row in bench.memories()}.get(text, "gone")


def days_noted(bench, kind):
    return [
        row["recorded_at"].date() for row in bench.store.journal.read().to_pylist() if row["kind"] == kind
    ]


def test_what_a_backfill_brings_is_shown_however_long_ago_it_was_said(bench):
    decisions().write(bench.projects)
    bench.backfill(now=NOW + 180 * DAY)
    bench.run("nightly", NOW + 180 * DAY)
    assert {row["status"] for row in bench.memories()} == {"active"}
    [scope] = [name for name in bench.store.tables.scopes() if name != "global"]
    assert "tide table of s1" in bench.store.published.brief(scope)


def test_two_and_six_months_without_a_session_change_nothing(bench):
    faded(bench)
    decisions("last", start=START + 30 * DAY).write(bench.projects)
    bench.backfill()
    bench.run("nightly", NOW)
    before = contents(bench.home)
    for months in (2, 6):
        bench.run("nightly", NOW + months * 30 * DAY)
        assert difference(contents(bench.home), before) == {}


def test_weak_memories_are_noted_once_and_archived_fourteen_days_of_work_later(bench):
    faded(bench)
    bench.begin(START + 30 * DAY)
    assert status_of(bench) == "active"
    assert days_noted(bench, "fade") == [(START + 30 * DAY).date()]
    for number, expected in ((40, "active"), (43, "active"), (45, "archived")):
        worked_on(bench, *range(30, number + 1))
        bench.backfill(now=START + number * DAY + timedelta(hours=9))
        assert status_of(bench) == expected, number
    assert len(days_noted(bench, "fade")) == 1


def test_the_days_of_grace_wait_while_the_project_rests(bench):
    faded(bench)
    bench.begin(START + 30 * DAY)
    bench.run("nightly", START + 300 * DAY)
    assert status_of(bench) == "active"
    worked_on(bench, 301)
    bench.backfill(now=START + 302 * DAY)
    assert status_of(bench) == "active"  # a pause is three days, whatever its length


def test_a_memory_that_is_said_again_is_strong_again_and_its_grace_is_forgotten(bench):
    faded(bench)
    bench.begin(START + 30 * DAY)
    again = Talk("again", start=START + 31 * DAY)
    again.user("Go.").assistant(f"[MEMORY: progress] {PLAN}").write(bench.projects)
    bench.backfill(now=START + 32 * DAY)
    assert days_noted(bench, "recover") == [(START + 32 * DAY).date()]
    worked_on(bench, *range(32, 60))
    bench.backfill(now=START + 60 * DAY)
    assert status_of(bench) == "active"
    assert len(days_noted(bench, "fade")) == 2


def test_what_is_archived_for_thirty_days_of_work_is_pruned_and_comes_back_when_it_is_said(bench):
    faded(bench)
    bench.begin(START + 30 * DAY)
    worked_on(bench, *range(30, 76))
    bench.stage()
    bench.run("nightly", START + 77 * DAY)
    assert status_of(bench) == "archived"
    bench.run("nightly", START + 78 * DAY)
    assert (status_of(bench), len(days_noted(bench, "prune"))) == ("gone", 1)
    again = Talk("again", start=START + 78 * DAY)
    again.user("Go.").assistant(f"[MEMORY: progress] {PLAN}").write(bench.projects)
    bench.backfill(now=START + 79 * DAY)
    assert status_of(bench) == "active"


def test_what_faded_together_is_pruned_a_little_every_day(bench):
    talk = Talk("first").user("Go.")
    for number in range(6):
        talk.assistant(f"[MEMORY: progress] Step {number}: move tide table number {number} to the pier.")
    talk.write(bench.projects)
    worked_on(bench, *range(1, 30))
    bench.backfill(now=START + 30 * DAY)
    worked_on(bench, *range(30, 76))
    bench.stage()
    bench.run("nightly", START + 77 * DAY)
    for night, gone in ((78, 1), (78, 1), (79, 2), (80, 3)):
        bench.run("nightly", START + night * DAY)
        assert [row["status"] for row in bench.memories()].count("pruned") == gone, night


def test_global_memories_age_while_anybody_works_anywhere(bench):
    talk = Talk("first").user("Go.").assistant("[MEMORY: preference] Write dates as year-month-day.")
    talk.write(bench.projects)
    bench.backfill(now=START + DAY)
    payload = {"text": PLAN, "memory_type": "progress", "category": "global"}
    told = entry("remember", "global", payload, recorded_at=START, memory_id="m1")
    bench.store.journal.write(told)
    worked_on(bench, *range(1, 15), cwd="/home/dev/reef")
    bench.backfill(now=START + 15 * DAY)
    [memory] = [row for row in bench.memories("global") if row["text"] == PLAN]
    assert memory["confidence"] == pytest.approx(0.25, abs=0.02)


def test_what_a_person_recalls_or_remembers_moves_the_clock(bench):
    Talk("first").user("Go.").assistant(f"[MEMORY: progress] {PLAN}").write(bench.projects)
    bench.backfill(now=START + DAY)
    [memory] = bench.memories()
    before = memory["confidence"]
    told = {"memory_ids": [], "told": []}
    for number in (2, 3):
        recall = entry("recall", memory["project_id"], told, recorded_at=START + number * DAY, actor="recall")
        bench.store.journal.write(recall)
    bench.run(now=START + 4 * DAY)
    [memory] = bench.memories()
    assert memory["confidence"] < before


def test_a_second_run_of_the_day_changes_nothing_and_rebuilt_equals_live(bench):
    faded(bench)
    bench.begin(START + 30 * DAY)
    worked_on(bench, *range(30, 76))
    bench.stage()
    for night in (60, 77, 78):
        bench.run("nightly", START + night * DAY)
        before = fixed_state(bench.home)
        bench.run("nightly", START + night * DAY + timedelta(hours=2))
        assert fixed_state(bench.home) == before
        with runs.opened("rebuild", bench.at(START + night * DAY)) as run:
            assert compare(run).differences == []


def test_from_scratch_says_the_same_but_for_what_was_found_weak(bench, other):
    faded(bench)
    bench.backfill(now=START + 10 * DAY)
    bench.run("nightly", START + 20 * DAY)
    bench.run("nightly", START + 30 * DAY)
    other.backfill(now=START + 30 * DAY)
    differing = difference(contents(bench.home), contents(other.home))
    assert set(differing) <= {"journal"}
    kinds = {row["kind"] for rows in differing.values() for side in rows for row in side}
    assert kinds <= {"fade", "recover", "project"}


def test_a_store_of_an_older_cortex_begins_its_days_of_grace_with_the_first_run(bench):
    faded(bench)
    bench.begin(START + 30 * DAY)
    manifest = bench.home / "runs" / "manifest.json"
    raw = json.loads(manifest.read_text())
    raw["files"] = {name: file for name, file in raw["files"].items() if file["table"] != "journal"}
    raw["stages"] = {name: note for name, note in raw["stages"].items() if not name.startswith("decay")}
    manifest.write_text(json.dumps(raw))
    shutil.rmtree(bench.home / "lake" / "journal")
    bench.run("nightly", START + 100 * DAY)
    assert days_noted(bench, "fade") == [(START + 100 * DAY).date()]
    assert status_of(bench) == "active"
