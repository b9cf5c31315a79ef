"""What changed with memory, from transcripts to the command: a planted effect shows, and no other does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cortex.flows.operations.maintain.report import read_effect
from cortex.hooks import shown
from cortex.transforms.errors import UsageError
from cortex.transforms.views.effect import LOWER, NOT_SHOWN, TOO_FEW
from tests.bench import NOW
from tests.transcripts import KELP, START, Talk

SESSIONS = 14


def session(number, *, reads, cwd=KELP, is_new=False):
    talk = Talk(f"{cwd}-{number}", cwd=cwd, start=START + timedelta(days=number))
    talk.user(f"Mend part {number} of the harvest page.")
    for at in range(reads + number % 2):
        # Most of a session's files were read by the one before the last; of new files none was.
        name = f"new{number}_{at}" if is_new else f"part{number + 2 * at}"
        talk.call("Read", "lines", file_path=f"{cwd}/{name}.py")
    return talk.call("Edit", "done", file_path=f"{cwd}/x.py", old_string="a", new_string=f"b{number}")


def history(bench, *, is_helped=False, cwd=KELP, briefed=True):
    for number in range(2 * SESSIONS):
        is_helped_now = is_helped and number >= SESSIONS
        talk = session(number, reads=1 if is_helped_now else 6, cwd=cwd, is_new=is_helped_now)
        bench.stage(talk.write(bench.projects))
        if briefed and number == SESSIONS:
            bench.run(now=NOW)
        if briefed and number >= SESSIONS:
            [project] = [each for each in bench.store.projects.all() if each.name == cwd.rpartition("/")[2]]
            began_ns = int((START + timedelta(days=number)).timestamp()) * 1_000_000_000
            scope = project.project_id, talk.session_id
            shown.log_shown(str(bench.home / "staging"), "session-start", *scope, ["m1"], 1000, began_ns)
    bench.run(now=NOW + timedelta(hours=1))


def verdicts(report, name="first_brief"):
    return {each.measure: each.verdict for each in report.comparisons[name][-1].differences}


def everywhere(bench):
    return read_effect(replace(bench.context, folder=bench.home), all_projects=True)


def test_an_effect_that_was_planted_is_seen(bench):
    history(bench, is_helped=True)
    report = read_effect(bench.context, "kelp")
    lower = {name for name, verdict in verdicts(report).items() if verdict == LOWER}
    assert lower == {"minutes_to_edit", "turns_to_edit", "read_again"}
    assert {verdict for name, verdict in verdicts(report).items() if name not in lower} == {NOT_SHOWN}
    assert set(verdicts(report, "memory").values()) == {TOO_FEW}
    assert report.window_sessions == SESSIONS and report.window_share == pytest.approx((0.005,) * 3)


def test_without_an_effect_none_is_seen_in_any_project(bench):
    for cwd in (KELP, "/home/dev/reef"):
        history(bench, cwd=cwd)
    report = everywhere(bench)
    assert report.comparisons["first_brief"][-1].projects == 2 and len(report.labels) == 2
    assert set(verdicts(report).values()) == {NOT_SHOWN}


def test_before_any_brief_it_is_said_that_there_is_too_little(bench):
    history(bench, briefed=False)
    report = everywhere(bench)
    assert set(verdicts(report).values()) == {TOO_FEW} and report.window_share is None
    with pytest.raises(UsageError):
        read_effect(bench.context, "kelp", all_projects=True)
