"""`cortex eval backtest`: a history replayed, each session known by those before it alone."""

from datetime import timedelta

import pytest

from cortex.flows.engines.runs import read_only_run
from cortex.scores.backtest import MIN_CHANCES, Backtest, Chance, Replayed, replay
from tests.transcripts import START, Talk

RULE = "Always write the harvest levels as whole millimetres, never as floats."


def session(name, day, *prompts):
    talk = Talk(name, start=START + timedelta(days=day))
    for prompt in prompts:
        talk.user(prompt).assistant("Understood; the change is made and the page is drawn again as before.")
    return talk


def history(*more):
    return [
        session("s1", 0, RULE, "Now draw the page of the harvest with a table and one row for each gauge."),
        session(
            "s2",
            2,
            "Draw the chart of the harvest levels with an axis and one line for each gauge.",
            f"No, that is wrong. {RULE}",
        ),
        *more,
    ]


def replayed(bench, talks):
    for talk in talks:
        talk.write(bench.projects)
    bench.begin()
    run = read_only_run(bench.context, with_model=False)
    [scope] = [scope for scope in run.readings.scopes() if scope != "global"]
    return replay(run, scope)


def test_what_an_earlier_session_settled_and_the_brief_tells_is_held(bench):
    [chance] = replayed(bench, history()).chances
    assert (chance.kind, chance.is_said_before, chance.is_held) == ("correction", True, True)


def test_what_nobody_had_said_is_not_held(bench):
    first = session("s1", 0, "Draw the page of the harvest with a table and one row for each gauge.")
    [chance] = replayed(bench, [first, history()[1]]).chances
    assert (chance.is_said_before, chance.is_held) == (False, False)


@pytest.mark.parametrize("later", ["of its own day", "of a later day"])
def test_nothing_of_the_session_itself_or_of_a_later_one_is_known_to_it(bench, other, later):
    """The replay of the first sessions is the same, whatever the ones after them say."""
    day = 2.01 if later == "of its own day" else 5
    future = session(
        "s3", day, f"{RULE} Chart, axis, gauge and harvest are settled so for good.", "Go on so."
    )
    short, long = replayed(bench, history()), replayed(other, history(future))
    s2 = history()[1].session_id
    assert [c for c in long.chances if c.session_id == s2] == list(short.chances)
    assert [m for m in long.shown if m.session_id == s2] == list(short.shown)


def test_below_fifty_chances_it_decides_nothing():
    chance = Chance("s1", "correction", START, "words")
    few = Replayed("p", 2, [chance] * (MIN_CHANCES - 1), [])
    enough = Replayed("p", 2, [chance] * MIN_CHANCES, [])
    assert (Backtest([few]).decides, Backtest([enough]).decides) == (False, True)


def test_replaying_writes_nothing(bench):
    for talk in history():
        talk.write(bench.projects)
    bench.begin()
    before = contents(bench)
    run = read_only_run(bench.context, with_model=False)
    for scope in run.readings.scopes():
        if scope != "global":
            replay(run, scope)
    assert contents(bench) == before


def contents(bench):
    return {path: path.read_bytes() for path in bench.home.rglob("*") if path.is_file()}
