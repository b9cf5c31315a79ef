"""What was extracted from settled turns stays as it was."""

import pyarrow as pa
import pytest
from hypothesis import given, settings

from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.language.settled import Settled, settled_rows
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, SETTLED, values
from tests.sessions import session, text
from tests.unit.extract.test_laws import SESSIONS, Said, long_session


def shown(events: pa.Table) -> list[str]:
    return [row["text"] for row in events.to_pylist() if row["memory_type"] and row["confidence"] >= 0.5]


def without(events: pa.Table, number: int) -> tuple[pa.Table, pa.Table]:
    """Return the events without their nth shown one, and that one."""
    ids = [r["event_id"] for r in events.to_pylist() if r["memory_type"] and r["confidence"] >= 0.5]
    is_gone = pa.compute.equal(events["event_id"], ids[number])
    return events.filter(pa.compute.invert(is_gone)), events.filter(is_gone)


def settle(turns: pa.Table, left: pa.Table, gone: pa.Table) -> Settled:
    rows = settled_rows(SETTLED.empty(), turns, set(values(turns, "session_id")), gone, "p", least_shown=0.5)
    return Settled.of(rows, left)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(given_turns=SESSIONS, more=SESSIONS)
def test_rows_of_settled_turns_stay_whatever_is_said_later(
    policy: Policy, given_turns: list[Said], more: list[Said]
) -> None:
    before, whole = session(*given_turns), session(*given_turns, *more)
    events = extract_events(before, policy)
    kept = extract_events(whole, policy, settle(before, events, EVENTS.empty())).to_pylist()
    assert all(row in kept for row in events.to_pylist())


def test_nothing_is_chosen_in_the_place_of_what_was_forgotten(policy: Policy) -> None:
    turns = session(*long_session())
    events = extract_events(turns, policy)
    left, gone = without(events, 0)
    assert extract_events(turns, policy, settle(turns, left, gone)).equals(left)


def test_what_is_said_later_is_told_beside_what_stays(policy: Policy) -> None:
    turns = session(*long_session())
    left, gone = without(extract_events(turns, policy), 0)
    tag = text("[MEMORY: decision] The harbour office reads the dashboard at six in the morning.")
    after = extract_events(session(*long_session(), tag), policy, settle(turns, left, gone))
    assert set(shown(after)) - set(shown(left)) == {
        "The harbour office reads the dashboard at six in the morning."
    }
