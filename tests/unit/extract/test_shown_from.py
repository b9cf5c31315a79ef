"""`shown_min_confidence` alone says from which confidence on a session's facts are shown (spec 5.2)."""

from dataclasses import replace

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.events import extract_events
from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL, values
from tests.rows import turn, turns

SESSION = turns(
    turn(1, "Use the push feed instead of the poller."),
    turn(2, "From now on always answer in short sentences."),
    turn(3, "[MEMORY: gotcha] The gauge reports in millimetres.", kind="text", trust="assistant"),
)


def policy_with(shown_from: float) -> Policy:
    policy = read_policy(None)
    row = {**policy.rows["thresholds"][("shown_min_confidence",)], "value": shown_from}
    thresholds = {**policy.rows["thresholds"], ("shown_min_confidence",): row}
    return replace(policy, rows={**policy.rows, "thresholds": thresholds})


@pytest.mark.parametrize(("shown_from", "facts"), [(0.5, 3), (0.85, 2), (0.95, 1)])
def test_a_fact_is_shown_from_the_threshold_on(shown_from, facts):
    policy = policy_with(shown_from)
    events = extract_events(SESSION, policy)
    shown = fold(events, JOURNAL.empty(), policy)
    assert shown.num_rows == facts
    assert min(values(shown, "initial_confidence")) >= shown_from


def test_a_threshold_above_one_shows_nothing():
    policy = policy_with(1.01)
    assert fold(extract_events(SESSION, policy), JOURNAL.empty(), policy).num_rows == 0
