"""The commit log: whatever is delayed or stopped, what was acknowledged is there once, in order."""

import pytest

from benchmarks.simulated_team import simulate
from tests.store.storage.test_remote_log import short_span  # noqa: F401


@pytest.mark.parametrize("writers", [60, 10])
def test_a_team_loses_doubles_and_refuses_nothing(writers):
    result = simulate(writers, items=10 if writers > 10 else 3, seed=7, span=20)
    assert [result[name] for name in ("lost", "doubled", "stale commits", "refused wrongly")] == [0] * 4
    assert result["killed"] or result["unreachable"]
