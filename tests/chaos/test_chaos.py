"""The kill law in short; `make chaos` does a thousand."""

from pathlib import Path

import pytest

from tests.chaos.crowd import crowd
from tests.chaos.harness import run_kills


@pytest.mark.slow
def test_a_few_kills_lose_and_double_nothing():
    told: list[str] = []
    tally = run_kills(9, seed=7, tell=told.append)
    assert tally.is_clean, "\n".join(told)
    assert tally.kills == 9


@pytest.mark.slow
def test_a_crowd_on_one_store_loses_and_doubles_nothing(tmp_path: Path):
    told = crowd(tmp_path, seconds=6)
    assert told["said"] > 8
    assert {name: count for name, count in told.items() if name != "said"} == {
        "missing": 0, "doubled": 0, "leftovers": 0, "failed": 0,
    }  # fmt: skip
