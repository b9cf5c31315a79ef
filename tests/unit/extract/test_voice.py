"""Who speaks and whether it still holds: pasted words, arguments, work in hand, what was taken back."""

import pytest

from tests.sessions import call, prompt, text
from tests.shown import Shown
from tests.unit.extract.test_prose import kept

REVIEW = (
    "Medium: the loader now exits with 0 although the argument is missing, so scripts that check the exit "
    "code keep the old file instead of failing, which must never happen in the nightly import of the tides."
)
PAGE = (
    "Because it is common to read gauges without a key, an alias is provided instead of the long command; "
    "the two are exactly equivalent, and the documentation only uses the alias."
)


def test_a_pasted_review_is_neither_the_persons_word_nor_a_decision(events: Shown) -> None:
    rows = events(prompt(f"{REVIEW}\n\n{PAGE}\n\nnot sure about the first one, what do you say?"))
    pasted = [row for row in rows if "exits with 0" in row["text"] or "exactly equivalent" in row["text"]]
    assert pasted
    assert all(row["trust"] == "assistant" and not row["layer"].endswith(":user") for row in pasted)
    assert all(row["memory_type"] not in ("decision", "pattern", "architecture") for row in pasted)


def test_a_long_prompt_in_the_persons_voice_stays_theirs(events: Shown) -> None:
    own = "I think we should fail when the argument is missing instead of keeping the old file for days."
    statement = "Fail when the argument is missing instead of keeping the old file for days."
    (row, *_) = [row for row in events(prompt(f"{REVIEW}\n\n{own}\n\n{PAGE}")) if statement in row["text"]]
    assert (row["trust"], row["memory_type"]) == ("user", "decision")
    assert row["layer"].endswith(":user")


def test_arguments_that_were_asked_for_settle_nothing(events: Shown) -> None:
    rows = events(
        prompt("Can you list the weak points of one file a day?"),
        text("Rejected: a month needs thirty files, so the curve must always read them all instead of one."),
    )
    assert all(row["memory_type"] not in ("decision", "pattern") for row in rows)


def test_words_between_two_calls_are_work_in_hand_unless_they_name_a_cause(events: Shown) -> None:
    def said_before_a_call(words: str) -> str:
        rows = events(text(words), call("Read", "loader.py"), text("Done."))
        return next(row["memory_type"] for row in rows if row["text"] == words)

    assert said_before_a_call("The `read` function must be called from the poller.") == "progress"
    assert said_before_a_call("The root cause is that `read` drops the last day of a month.") == "gotcha"


@pytest.mark.parametrize("taken_back", ["Revert that, please.", "never mind, leave it", "ok, undo this"])
def test_what_is_taken_back_at_once_is_not_shown(shown: Shown, taken_back: str) -> None:
    rows = shown(
        text("`loader.py` reads the files in parallel instead of one by one because the disk is idle."),
        prompt(taken_back),
    )
    assert "in parallel" not in kept(rows)


def test_another_value_ordered_overturns_the_one_that_was_chosen(shown: Shown) -> None:
    chosen = "I picked v0.52.0 deliberately because it is the smallest bump that clears the alerts."
    assert "Picked v0.52.0" in kept(shown(text(chosen), prompt("do 0.52.0")))
    assert "Picked v0.52.0" not in kept(shown(text(chosen), prompt("do 0.54.0")))


def test_a_claim_refuted_two_turns_later_is_not_shown(shown: Shown) -> None:
    rows = shown(
        text("Perfect! All 12 tests pass and the tide curve is complete."),
        prompt("thanks, I'll look"),
        text("The curve is drawn from `tides.db`."),
        prompt("The curve is still broken on the harbour page."),
    )
    assert "All 12 tests pass" not in kept(rows)
