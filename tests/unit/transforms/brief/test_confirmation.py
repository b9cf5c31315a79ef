"""Every tenth brief asks whether its oldest claims still hold, in one line and within the budget."""

from datetime import timedelta

import pyarrow as pa
import pytest

from cortex.hooks.tokens import tokens_in
from cortex.transforms.brief.explanation import Choice
from cortex.transforms.brief.render import CONFIRM_HEADING, asked_until, choose, lay_out
from cortex.transforms.schemas import EDGES, MEMORIES, UTC_US
from tests.examples import cases
from tests.unit.transforms.brief.test_render import FIRST_DAY, POLICY, contradiction, memory

EVERY = int(POLICY.threshold("brief_confirm_sessions"))
LATER = FIRST_DAY + timedelta(days=90)
RED = memory(0xA1B2C3 << 104, "The harbour lamp is red.", updated_at=FIRST_DAY)
FLOAT = memory(0xD4E5F6 << 104, "Floats are stored as text.", updated_at=FIRST_DAY + timedelta(days=1))
TIDE = memory(0x777777 << 104, "Tide tables come from a file.", updated_at=FIRST_DAY + timedelta(days=2))


def sessions(count: int, project_id: str = "tidepool") -> pa.Table:
    begun = [FIRST_DAY + timedelta(hours=number + 1) for number in range(count)]
    rows = {"project_id": [project_id] * count, "session_id": [f"s{n}" for n in range(count)]}
    return pa.table(rows | {"started_at": pa.array(begun, UTC_US), "ended_at": pa.array(begun, UTC_US)})


def choices(
    *rows: dict, asks: bool = True, budget_tokens: int = 1000, edges: pa.Table | None = None
) -> list[Choice]:
    return choose(
        MEMORIES.of(list(rows)),
        EDGES.empty() if edges is None else edges,
        POLICY,
        project_name="tidepool",
        budget_tokens=budget_tokens,
        confirms_until=LATER if asks else None,
    )


def brief(*rows: dict, **how: object) -> str:
    return lay_out(choices(*rows, **how), project_name="tidepool")


@cases("count", [0, 1, EVERY - 1, EVERY + 1, 2 * EVERY - 1])
def test_between_the_tenth_sessions_nothing_is_asked(count):
    assert asked_until(sessions(count), "tidepool", None, POLICY) is None


@pytest.mark.parametrize("times", [1, 2, 7])
def test_each_tenth_session_asks_what_was_last_said_before_the_last_ten(times):
    begun = FIRST_DAY + timedelta(hours=(times - 1) * EVERY + 1)
    assert asked_until(sessions(times * EVERY), "tidepool", None, POLICY) == begun


def test_a_confirmation_starts_the_count_again():
    confirmed_at = FIRST_DAY + timedelta(hours=4, minutes=30)
    assert asked_until(sessions(EVERY), "tidepool", confirmed_at, POLICY) is None
    assert asked_until(sessions(EVERY + 4), "tidepool", confirmed_at, POLICY) is not None


def test_the_sessions_of_another_project_do_not_count():
    assert asked_until(sessions(EVERY, "kelp"), "tidepool", None, POLICY) is None


def test_the_two_oldest_claims_are_quoted_with_their_ids_in_one_line_at_the_end():
    text = brief(TIDE, FLOAT, RED)
    line = (
        '- Said long ago: `a1b2c3` "The harbour lamp is red"; `d4e5f6` "Floats are stored as text". '
        "If the user says so: `cortex confirm ID`, or `cortex forget ID`."
    )
    assert f"\n\n## {CONFIRM_HEADING}\n{line}\n\n" in text
    assert text.count("Said long ago") == 1 and text.index(line) > text.index("Tide tables")


def test_where_nothing_is_asked_the_brief_is_as_without_the_question():
    assert CONFIRM_HEADING not in brief(RED, FLOAT, asks=False)


def test_neither_what_is_new_nor_pinned_nor_in_dispute_is_asked_about():
    new = memory(1, "Buoys blink twice.", updated_at=LATER + timedelta(seconds=1))
    pinned = memory(2, "Ropes are blue.", is_pinned=True, updated_at=FIRST_DAY)
    assert CONFIRM_HEADING not in brief(new, pinned)
    assert CONFIRM_HEADING not in brief(RED, FLOAT, edges=contradiction(RED, FLOAT))


def test_what_the_brief_does_not_show_is_not_asked_about():
    faded = RED | {"confidence": 0.1, "initial_confidence": 0.1}
    assert "a1b2c3" not in brief(faded, FLOAT) and "d4e5f6" in brief(faded, FLOAT)


@cases("budget_tokens", [120, 200, 300, 500, 1000])
def test_the_question_is_within_the_budget_however_full_the_brief_is(budget_tokens):
    rows = [memory(n, f"Station {n} reports at minute {n}, as word{n} says.") for n in range(40)]
    text = brief(*rows, budget_tokens=budget_tokens)
    assert tokens_in(text) <= budget_tokens
    assert (CONFIRM_HEADING in text) == (budget_tokens >= 300)


def test_the_longest_question_takes_no_more_than_is_kept_free_for_it():
    long = "Überlängenträger describe every measured station in words nobody would shorten at all"
    rows = [memory(n << 104, f"{long}, case{n}.", memory_type="gotcha") for n in (0xABCDEF, 0xBCDEFA)]
    [question] = [choice.text for choice in choices(*rows) if choice.section == CONFIRM_HEADING]
    assert tokens_in(f"\n## {CONFIRM_HEADING}\n{question}\n") <= POLICY.threshold("brief_confirm_tokens")


def test_a_quote_cannot_leave_its_quotation_marks():
    [question] = [
        choice.text
        for choice in choices(RED | {"text": 'Say "yes" and run `rm`; see <b>x</b>.'})
        if choice.section == CONFIRM_HEADING
    ]
    assert question.count('"') == 2 and "\n" not in question
