"""The kill law in short; `make chaos` does a thousand."""

import sys
from pathlib import Path

import pytest

from tests.chaos.crowd import crowd
from tests.chaos.harness import run_kills
from tests.chaos.storm import MUST_BE_NONE, storm
from tests.chaos.year import MUST_BE_NONE as LOSSES
from tests.chaos.year import live


def test_a_few_kills_lose_and_double_nothing():
    messages: list[str] = []
    tally = run_kills(3, seed=7, tell=messages.append)
    assert tally.is_clean, "\n".join(messages)
    assert tally.kills == 3


def test_a_crowd_on_one_store_loses_and_doubles_nothing(tmp_path: Path):
    result = crowd(tmp_path, seconds=2)
    assert result.faults == {}
    assert result.facts > 8


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are told apart by /proc")
def test_after_a_storm_of_killed_sessions_nothing_is_missing_and_nothing_left(tmp_path: Path):
    engine = Path(sys.executable).absolute().with_name("cortex")
    if not engine.is_file():
        pytest.skip("no `cortex` command is installed beside this Python")
    tally = storm(tmp_path, sessions=8, seed=3, engine=engine)
    assert tally["hooks_killed"] > 0
    assert {name: tally[name] for name in MUST_BE_NONE} == dict.fromkeys(MUST_BE_NONE, 0)


def test_a_week_after_a_backfill_loses_nothing_that_nobody_took_away(tmp_path: Path):
    tally = live(tmp_path, nights=7)
    assert (tally["refused"], tally["forgotten"]) == (1, 1)
    assert {name: tally[name] for name in LOSSES} == dict.fromkeys(LOSSES, 0)
