"""Laws of extraction: order, repetition, sessions apart."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.transforms.extract.events import extract_events
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS
from tests.sessions import Said, call, prompt, session, text

WORDS = st.sampled_from(
    [
        "We use SQLite instead of Postgres because one file is enough.",
        "The root cause is that `loader.py` drops the last column.",
        "## Summary\n- Added `gauge.py`\n- Removed the poller",
        "[MEMORY: gotcha] The gauge reports in millimetres.",
        "Let me look at the loader:",
        "```\nunclosed",
        "| a | b |",
        "- item\n  - sub",
        "조석은 매일 두 번 바뀝니다. 결정했습니다.",
        "\\ \x0c \u2028 🤖",
        "",
    ]
)
TURN = st.one_of(
    WORDS.map(text),
    WORDS.map(prompt),
    WORDS.map(lambda words: call("Bash", f"git commit -m '{words}'", "[main 1a2b3c4] x")),
)
SESSIONS = st.lists(TURN, min_size=1, max_size=12)


def long_session() -> list[Said]:
    """Return facts that the assistant tagged, between words of its prose."""
    return [
        text(f"{prose} store {n} instead of store {n + 1} because harbour {n} asks for `option_{n}`.")
        for n in range(40)
        for prose in ("[MEMORY: decision] Readings are in", "We use")
    ]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(given_turns=SESSIONS, seed=st.randoms(use_true_random=False))
def test_order_and_repetition_of_rows_change_nothing(policy: Policy, given_turns: list[Said], seed) -> None:  # type: ignore[no-untyped-def]
    table = session(*given_turns)
    order = list(range(table.num_rows)) * 2
    seed.shuffle(order)
    assert extract_events(table.take(order), policy).equals(extract_events(table, policy))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(given_turns=SESSIONS)
def test_events_hold_to_their_schema(policy: Policy, given_turns: list[Said]) -> None:
    events = extract_events(session(*given_turns), policy)
    events.validate(full=True)
    assert events.schema.equals(EVENTS.arrow)
    rows = events.to_pylist()
    assert len({row["event_id"] for row in rows}) == len(rows)
    assert all(0.0 <= row["confidence"] <= 1.0 and row["text"] and row["lines"] for row in rows)


def test_sessions_do_not_change_each_other(policy: Policy) -> None:
    both = pa.concat_tables([session(*long_session()), session(*long_session(), session_id="s2")])
    alone = extract_events(session(*long_session()), policy)
    together = extract_events(both, policy).to_pylist()
    assert [row for row in together if row["session_id"] == "s1"] == alone.to_pylist()


def test_nothing_gives_nothing(policy: Policy) -> None:
    assert extract_events(session(), policy).equals(EVENTS.empty())
