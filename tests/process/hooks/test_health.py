"""One line says that taking in has failed for a day, and no line where all is well; how much is held."""

import json
import os
import time

import pytest

from cortex.hooks import background, health, ticket
from tests.process.hooks.test_session_start import start

HOUR, DAY = 3600, 24 * 3600
NOW = 1_795_000_000.0  # 18 November 2026


@pytest.fixture
def home(tmp_path):
    """A store whose engine is there and whose last session began an hour ago."""
    engine = tmp_path / "bin" / "cortex"
    engine.parent.mkdir()
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    home = tmp_path / "home"
    for folder in ("staging/seen", "staging/new", "staging/claimed", "runs"):
        (home / folder).mkdir(parents=True)
    (home / "engine").write_text(f"{engine}\n")
    began(home, NOW - HOUR)
    return home


def began(home, at):
    os.utime(home / "staging" / "seen", (at, at))


def waits(home, since, folder="new"):
    (home / "staging" / folder / f"{ticket.stamp(int(since * 1e9))}-stop-0b6f-1_2.json").write_text("{}")


def mark(home, **told):
    (home / "runs" / "background.json").write_text(json.dumps(told))


def complained(home, at):
    (home / "runs" / "hooks.log").write_text("x\n")
    os.utime(home / "runs" / "hooks.log", (at, at))


def warned(home):
    return health.warning(str(home), NOW)


def test_all_is_well(home):
    waits(home, NOW - HOUR / 2)
    mark(home, started_at=NOW - HOUR, ended_at=NOW - HOUR, exit_code=0)
    assert warned(home) == ""


@pytest.mark.parametrize("folder", ["new", "claimed"])
def test_a_ticket_that_outlived_a_start_by_a_day_is_told(home, folder):
    waits(home, NOW - 3 * DAY, folder)
    assert warned(home) == "Cortex has taken in no session since 15 Nov 26: run `cortex doctor`."


def test_a_ticket_of_before_the_weekend_is_nothing_wrong(home):
    waits(home, NOW - 3 * DAY)
    began(home, NOW - 3 * DAY - HOUR)
    assert warned(home) == ""


def test_a_ticket_of_this_morning_is_nothing_wrong_yet(home):
    waits(home, NOW - 20 * HOUR)
    assert warned(home) == ""


def test_without_an_engine_tickets_wait_as_they_should(home):
    (home / "engine").unlink()
    waits(home, NOW - 3 * DAY)
    assert warned(home) == ""


def test_an_engine_that_is_gone_is_named(home):
    (home / "engine").write_text("/gone/cortex\n")
    waits(home, NOW - 3 * DAY)
    assert "command is gone" in warned(home) and "15 Nov 26" in warned(home)


def test_runs_that_fail_for_a_day_are_told(home):
    failed = {"started_at": NOW - HOUR, "ended_at": NOW - HOUR, "exit_code": 1}
    mark(home, **failed, failures=1, failing_since=NOW - 2 * DAY)
    assert "since 16 Nov 26" in warned(home)
    mark(home, **failed, failures=1, failing_since=NOW - 2 * HOUR)
    assert warned(home) == ""


def test_one_failure_long_ago_is_nothing(home):
    mark(home, started_at=NOW - 3 * DAY, ended_at=NOW - 3 * DAY, exit_code=1)
    assert warned(home) == ""


def test_a_retry_at_work_is_not_counted_as_a_failure(home):
    mark(home, started_at=NOW, failures=1, failing_since=NOW - 3 * DAY)
    assert warned(home) == ""


def test_hooks_that_complain_for_a_day_and_leave_no_mark_are_told(home):
    began(home, NOW - 2 * DAY)
    complained(home, NOW)
    assert "since 16 Nov 26" in warned(home)


def test_an_error_among_marks_that_are_written_is_nothing(home):
    complained(home, NOW)
    assert warned(home) == ""


def set_aside(home, at, *names):
    (home / "staging" / "set_aside").mkdir(exist_ok=True)
    for name in names:
        reason = home / "staging" / "set_aside" / f"{name}.reason"
        reason.write_text("{}")
        os.utime(reason, (at, at))


def test_transcripts_set_aside_of_late_are_counted_and_older_ones_left_in_peace(home):
    set_aside(home, NOW - 5 * DAY, "a", "b")
    assert warned(home) == ""
    set_aside(home, NOW - HOUR, "c")
    assert warned(home) == "Cortex could not read a transcript: `cortex doctor` says why."
    set_aside(home, NOW - HOUR, "d")
    assert warned(home) == "Cortex could not read 2 transcripts: `cortex doctor` says why."


def silent(home, content, noted_at=NOW - HOUR):
    note = home / "runs" / "writer.json"
    note.write_text(content)
    os.utime(note, (noted_at, noted_at))


def test_a_language_model_that_answers_nothing_for_a_day_is_told_as_long_as_runs_try(home):
    silent(home, '{"failed_at": "2026-11-15T08:00:00+00:00"}')
    assert warned(home).startswith("The language model has read no session for Cortex since 15 Nov 26")
    silent(home, '{"failed_at": "2026-11-15T08:00:00+00:00"}', NOW - 4 * DAY)
    assert warned(home) == ""
    silent(home, '{"failed_at": "2026-11-18T10:00:00+00:00"}')
    assert warned(home) == ""


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"failed_at": 7}', "\x00", '{"failed_at": null}'])
def test_a_note_that_is_none_says_nothing(home, content):
    silent(home, content)
    assert warned(home) == ""


@pytest.mark.parametrize(
    "name", ["x.json", "1-a.json", "20269999T-stop.json", ".json", "20261301T000000Z-stop-a-b.json"]
)
def test_a_strange_name_of_a_ticket_is_passed_over(home, name):
    (home / "staging" / "new" / name).write_text("{}")
    assert warned(home) == ""


# Failures in a row


def failing_after(*codes):
    """Return what the marks of runs that ended so add up to; None is a run that was killed."""
    told = {}
    for number, code in enumerate(codes):
        failures, since = background.failing(told, is_over=True)
        told = {"failures": failures, "failing_since": since} if failures else {}
        told["started_at"] = 100.0 * number
        if code is not None:
            told |= {"ended_at": 100.0 * number + 50, "exit_code": code}
    return background.failing(told, is_over=True)


def test_failures_in_a_row_are_counted_from_the_first():
    assert failing_after(0, 1, 1, -9) == (3, 150.0)
    assert failing_after(1, 0) == (0, 0.0)
    assert failing_after(1, 0, 1) == (1, 250.0)
    assert failing_after(None, None) == (2, 0.0)


def test_a_busy_store_neither_ends_nor_adds_to_a_row_of_failures():
    assert failing_after(1, 75, 1)[0] == 2
    assert failing_after(75, 75)[0] == 0


# At the start of a session


def test_the_warning_reaches_model_and_person(client):
    client.publish("/home/ada/kiln", "p1", "fact")
    start(client)
    (client.home / "engine").write_text("/gone/cortex\n")
    (client.staging / "new").mkdir(exist_ok=True)
    waits(client.home, time.time() - 2 * DAY)
    told = json.loads(start(client).stdout)
    warning = told["systemMessage"]
    assert told["hookSpecificOutput"]["additionalContext"] == f"fact\n\n{warning}"
    assert warning.startswith("Cortex has taken in no session since")


def test_the_count_of_memories_stands_at_the_end(client):
    client.publish("/home/ada/kiln", "p1", "fact")
    (client.home / "published" / "counts.json").write_text('{"p1": 26, "global": 3}')
    told = json.loads(start(client).stdout)
    held = "Cortex holds 26 memories of this project and 3 for all projects; `cortex recall` searches them."
    assert told["hookSpecificOutput"]["additionalContext"] == f"fact\n\n{held}"
    assert "systemMessage" not in told


@pytest.mark.parametrize("counts", ["", "[]", '{"p1": 0}', '{"p1": "many"}', '{"p2": 4}'])
def test_without_a_count_there_is_no_such_line(client, counts):
    client.publish("/home/ada/kiln", "p1", "fact")
    (client.home / "published" / "counts.json").write_text(counts)
    assert json.loads(start(client).stdout)["hookSpecificOutput"]["additionalContext"] == "fact"
