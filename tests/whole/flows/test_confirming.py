"""Over whole runs: the tenth session's brief asks about the oldest claims, and a person's word ends it."""

from datetime import timedelta

from cortex.flows.memory import Memory
from cortex.transforms.brief.render import CONFIRM_HEADING
from tests.bench import NOW
from tests.transcripts import START, Talk, decisions

DAY = timedelta(days=1)


def work_on(bench, *days):
    for number in days:
        talk = Talk(f"day{number}", start=START + number * DAY)
        talk.user("Is the build green today?").assistant("Yes, all checks are green.").write(bench.projects)


def brief_of(bench) -> str:
    bench.backfill(now=NOW)
    [scope] = [name for name in bench.store.tables.scopes() if name != "global"]
    return str(bench.store.published.brief(scope))


def test_the_tenth_session_asks_and_a_confirmation_ends_it(bench):
    decisions().write(bench.projects)
    work_on(bench, *range(1, 9))
    assert CONFIRM_HEADING not in brief_of(bench)
    work_on(bench, 9)
    asked = brief_of(bench)
    assert CONFIRM_HEADING in asked and "Said long ago: `" in asked
    name = asked.partition("Said long ago: `")[2][:6]
    memory = Memory.of(bench.at(NOW))
    [change] = memory.confirm([name])
    assert change.applied.is_in_effect
    [scope] = [name for name in bench.store.tables.scopes() if name != "global"]
    assert CONFIRM_HEADING not in bench.store.published.brief(scope)
    work_on(bench, 10)
    assert CONFIRM_HEADING not in brief_of(bench)
