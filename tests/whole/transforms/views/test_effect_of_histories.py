"""What changed with memory: an effect that is there is found, one that is not there is hardly ever."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.hooks.shown import row_of_shown
from cortex.storage.settings.reference import read_policy
from cortex.transforms.schemas import CALLS, EVENTS
from cortex.transforms.views.effect import (
    HIGHER,
    LOWER,
    MEASURES,
    MIN_SESSIONS,
    NOT_SHOWN,
    TOO_FEW,
    asked_again,
    compared,
    difference,
    handed_in,
    session_effects,
)
from cortex.transforms.views.metrics import session_metrics
from tests.examples import HAS_EVERY_CASE
from tests.rows import turn, turns

POLICY = read_policy(None)
BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)
HISTORIES = 200 if HAS_EVERY_CASE else 100
ASKED_AGAIN = [f"Which {a} of the {b} holds the {c} table?" for a in ("part", "page", "layer") for b in
         ("gauge", "tide", "reef", "harvest") for c in ("level", "season", "depth")]  # fmt: skip


class History:
    """A project's invented sessions, one a day; what each does is drawn alike before and after the brief."""

    def __init__(self, name, draw, sessions=40, brief_at=20, *, is_helped=False):
        self.name, self.draw, self.rows, self.calls = name, draw, [], []
        self.pace = draw.uniform(0.5, 2)
        for number in range(sessions):
            is_after = number >= brief_at
            self._session(f"{name}-{number}", BEGAN + timedelta(days=number), is_helped and is_after)
            if is_after:
                self._show(f"{name}-{number}", BEGAN + timedelta(days=number))

    def _session(self, session, at, is_helped):
        draw, line = self.draw, 0

        def say(kind, text, tool=None):
            nonlocal at, line
            at, line = at + timedelta(minutes=float(draw.exponential(self.pace))), line + 1
            self.rows.append(
                turn(line, text, turn_id=f"{session}-{line}", project_id=self.name, session_id=session,
                     kind=kind, said_at=at, tool_name=tool)
            )  # fmt: skip

        say("prompt", f"Go on with {session}.")
        for _ in range(draw.poisson(1 if is_helped else 6)):
            # Popular files are read more often than others, as in real projects.
            first = 40 if is_helped else 1
            say("tool_call", f"src/part_{first + min(38, draw.geometric(0.06))}_{is_helped}.py", "Read")
        for _ in range(draw.poisson(1)):
            say("text", ASKED_AGAIN[draw.integers(len(ASKED_AGAIN))])
        for _ in range(draw.poisson(2)):
            say("prompt", "That is wrong, it still fails." if draw.random() < 0.15 else "Good.")
        if draw.random() < 0.9:
            say("tool_call", "src/part_1.py", "Edit")

    def _show(self, session, at):
        self.calls.append(
            row_of_shown("session-start", self.name, session, ["m1"], 900, at.isoformat()) | {"called_at": at}
        )


def effects_of(*histories):
    all_turns = turns(*(row for history in histories for row in history.rows))
    metrics = session_metrics(all_turns, EVENTS.empty(), POLICY)
    calls = CALLS.of([call for history in histories for call in history.calls])
    return session_effects(all_turns, metrics, calls, POLICY).to_pylist()


def verdicts(sessions):
    return {each.measure: each.verdict for each in compared(sessions, "first_brief")[-1].differences}


def test_a_planted_effect_is_found_and_nothing_else():
    draw = np.random.default_rng(3)
    sessions = effects_of(*(History(name, draw, is_helped=True) for name in ("kelp", "reef")))
    assert verdicts(sessions) == dict.fromkeys(MEASURES, NOT_SHOWN) | dict.fromkeys(
        ("minutes_to_edit", "turns_to_edit", "read_again"), LOWER
    )


def test_of_histories_without_an_effect_at_most_eight_in_a_hundred_differ_in_a_measure():
    """From 9 sessions in one project to 60 in three; the sides are as unequal as they are in practice."""
    draw = np.random.default_rng(5)
    histories = []
    for number in range(HISTORIES):
        for part in range(1 + number % 3):
            before, after = int(draw.integers(17, 40)), int(draw.integers(9, 31))
            histories.append(History(f"{number}-{part}", draw, before + after, before))
    sessions = defaultdict(list)
    for row in effects_of(*histories):
        sessions[row["project_id"].partition("-")[0]].append(row)
    differing = Counter(
        measure
        for rows in sessions.values()
        for measure, verdict in verdicts(rows).items()
        if verdict in (LOWER, HIGHER)
    )
    assert len(sessions) == HISTORIES and max(differing.values()) <= 0.08 * HISTORIES, differing


@pytest.mark.spread(3)
@pytest.mark.parametrize("kind", ["minutes", "shares", "rare"])
@pytest.mark.parametrize("sessions", [8, 15, 40])
def test_the_statistic_alone_finds_nothing_where_nothing_is(kind, sessions):
    draw = np.random.default_rng(sessions)
    values = {
        "minutes": lambda count: draw.lognormal(1.5, 0.8, count),
        "shares": lambda count: draw.binomial(5, 0.4, count) / 5,
        "rare": lambda count: draw.poisson(0.3, count) / draw.integers(1, 6, count),
    }[kind]
    differing = 0
    for _ in range(HISTORIES):
        strata = [(list(values(sessions)), list(values(2 * sessions))) for _ in range(2)]
        differing += difference("x", strata[: 1 if sessions > 8 else 2]).verdict != NOT_SHOWN
    assert differing <= 0.08 * HISTORIES


@given(st.lists(st.floats(-1e6, 1e6), max_size=MIN_SESSIONS - 1), st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_below_eight_sessions_a_side_nothing_is_said(few, others):
    assert difference("x", [(few, others)]).verdict == TOO_FEW
    assert difference("x", [(others, few)]).low is None


@given(
    st.lists(st.tuples(*[st.lists(st.floats(0, 100), min_size=2, max_size=12)] * 2), min_size=1, max_size=4)
)
def test_the_order_of_projects_and_a_common_shift_do_not_matter(strata):
    shifted = [([x + 7 for x in base], [x + 7 for x in others]) for base, others in strata]
    own, other = difference("x", strata), difference("x", shifted)
    assert (own.difference is None) == (other.difference is None)
    if own.difference is not None:
        assert other.difference == pytest.approx(own.difference, abs=1e-6)
        assert own.low <= own.high


def test_a_difference_is_taken_within_projects():
    """A project with long sessions that has more of them afterwards makes no session longer."""
    strata = [([1.0, 1.1] * 10, [1.0, 1.1] * 4), ([50.0, 50.1] * 4, [50.0, 50.1] * 20)]
    assert difference("minutes_to_edit", strata).verdict == NOT_SHOWN


def test_without_a_brief_all_is_before_and_too_few():
    sessions = effects_of(History("kelp", np.random.default_rng(1), 12, 12))
    [_, overall] = compared(sessions, "first_brief")
    assert (overall.base_sessions, overall.sessions, overall.projects) == (12, 0, 0)
    assert {each.verdict for each in overall.differences} == {TOO_FEW}


def test_sessions_after_the_first_brief_that_were_shown_nothing_are_those_without():
    history = History("kelp", np.random.default_rng(1), 30, 10)
    history.calls = history.calls[::2]
    sessions = effects_of(history)
    [own, _] = compared(sessions, "memory")
    assert (own.base_sessions, own.sessions) == (10, 10)
    assert compared(sessions, "first_brief")[0].sessions == 20


def test_a_question_asked_again_counts_only_if_its_words_and_names_are_the_same():
    def said(session, text, day, kind="text"):
        at = BEGAN + timedelta(days=day)
        return turn(1, text, turn_id=f"{session}{text}", session_id=session, kind=kind, said_at=at)

    asked = asked_again(
        turns(
            said("a", "Done. Which unit does the tide table use for depth?", 0),
            said("b", "In which unit is depth in the tide table?", 1, "prompt"),
            said("b", "Which unit does `tides.csv` use for depth in the tide table?", 1),
            said("c", "Shall I commit the tide table with the depth unit?", 2),
            said("d", "Which unit does the tide table use for depth? → metres", 3, "choice"),
        ),
        POLICY,
    ).to_pylist()
    assert {row["session_id"]: row["asked_again"] for row in asked} == {"a": 0, "b": 1, "c": 0, "d": 1}


def test_tokens_are_summed_and_unknown_where_an_older_hook_did_not_note_them():
    at = BEGAN.isoformat()
    calls = [
        row_of_shown("session-start", "p", "s1", ["m1"], 900, at),
        row_of_shown("recall", "p", "s1", ["m2"], 80, at),
        row_of_shown("recall", "p", "s2", ["m2"], 80, at)
        | {"arguments": '{"memory_ids": ["m2"], "session_id": "s2"}'},
        row_of_shown("recall", "p", "s3", ["m2"], 80, at) | {"arguments": "[]"},
    ]
    handed = handed_in(CALLS.of([call | {"called_at": BEGAN} for call in calls])).to_pylist()
    assert {row["session_id"]: row["tokens"] for row in handed} == {"s1": 980, "s2": None}
