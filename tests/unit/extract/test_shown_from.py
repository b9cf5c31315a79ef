"""`shown_min_confidence` alone says from which confidence on a session's facts are shown (spec 5.2)."""

from dataclasses import replace

import pytest

from cortex.storage.reference import read_policy
from cortex.transforms.extract.events import extract_events
from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL, values
from tests.rows import turn, turns

SESSION = turns(
    turn(1, "Which store should the tide gauges write to?"),
    *(
        turn(
            line,
            f"We decided to use relay{line} over relay{line + 100} because gauge{line} loses readings.",
            kind="text",
            trust="assistant",
        )
        for line in range(2, 60)
    ),
)


def policy_with(shown_from: float) -> Policy:
    policy = read_policy(None)
    row = {**policy.rows["thresholds"][("shown_min_confidence",)], "value": shown_from}
    thresholds = {**policy.rows["thresholds"], ("shown_min_confidence",): row}
    return replace(policy, rows={**policy.rows, "thresholds": thresholds})


@pytest.mark.parametrize("shown_from", [0.3, 0.5, 0.7, 0.9])
def test_a_fact_is_shown_from_the_threshold_on_and_no_other_reaches_it(shown_from):
    policy = policy_with(shown_from)
    events = extract_events(SESSION, policy)
    likely = extract_events(SESSION, policy_with(0.0))
    least = max(shown_from, policy.threshold("extract_least_chance"))
    shown = fold(events, JOURNAL.empty(), policy)
    assert shown.num_rows == sum(value >= shown_from for value in values(events, "confidence"))
    assert min(values(shown, "initial_confidence"), default=1.0) >= least
    assert shown.num_rows <= policy.threshold("session_memories_max") < likely.num_rows


def test_a_threshold_above_one_shows_nothing():
    policy = policy_with(1.01)
    assert fold(extract_events(SESSION, policy), JOURNAL.empty(), policy).num_rows == 0
