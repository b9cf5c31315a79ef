"""The kill law in short; `make chaos` does a thousand."""

import pytest

from tests.chaos.harness import run_kills


@pytest.mark.slow
def test_a_few_kills_lose_and_double_nothing():
    told: list[str] = []
    tally = run_kills(9, seed=7, tell=told.append)
    assert tally.is_clean, "\n".join(told)
    assert tally.kills == 9
