"""Short words of assent take the proposal that they accept."""

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.answers import accepted
from cortex.transforms.extract.language.phrases import Phrasebook
from tests.examples import cases
from tests.sessions import prompt, text
from tests.shown import Shown

PHRASES = Phrasebook.of(read_policy(None))
OPTIONS = """There are three ways:

1. **SQLite** - one file that the backup takes along
2. **Postgres** - a server of its own
3. **Parquet files** - one a month

Which one do you prefer?"""


@cases(
    ("words", "statement"),
    [
        ("1", "Agreed: SQLite - one file that the backup takes along, not Postgres or Parquet files."),
        (
            "ok, let's go with option 2",
            "Agreed: Postgres - a server of its own, not SQLite or Parquet files.",
        ),
        ("the last one", "Agreed: Parquet files - one a month, not SQLite or Postgres."),
        ("1 and 3", "Agreed: SQLite - one file that the backup takes along; Parquet files - one a month."),
        (
            "1, but without the journal",
            "Agreed: SQLite - one file that the backup takes along, not Postgres or Parquet files,"
            " but without the journal.",
        ),
    ],
)
def test_a_number_or_a_place_takes_that_option(words: str, statement: str) -> None:
    agreed = accepted(words, OPTIONS, PHRASES)
    assert agreed is not None and agreed.text == statement


@pytest.mark.parametrize(
    ("proposal", "statement"),
    [
        ("Polling is wasteful. Should I subscribe to the push feed instead?", "subscribe to the push feed"),
        (
            "I'd drop the hint from the last line. Want me to make the change?",
            "drop the hint from the last line",
        ),
        ("Want me to store the levels in UTC, or leave them as they are?", "store the levels in UTC"),
    ],
)
def test_yes_takes_the_offer_or_what_it_points_to(proposal: str, statement: str) -> None:
    agreed = accepted("yes please", proposal, PHRASES)
    assert agreed is not None and agreed.text == f"Agreed: {statement}."


@cases(
    ("words", "proposal"),
    [
        ("yes please", "Should I take SQLite or Postgres?"),
        ("yes please", "The tests pass."),
        ("7", OPTIONS),
        ("a bit slower please", OPTIONS),
        ("which one is faster?", OPTIONS),
        ("no", "Should I subscribe to the push feed instead?"),
    ],
)
def test_what_names_no_proposal_agrees_to_none(words: str, proposal: str) -> None:
    assert accepted(words, proposal, PHRASES) is None


def test_an_agreement_rests_on_both_and_is_no_surer_than_the_assistant(events: Shown) -> None:
    rows = events(
        text("Polling is wasteful. Should I subscribe to the push feed instead?"), prompt("yes please")
    )
    (row,) = [row for row in rows if row["layer"].endswith(":agreed")]
    assert (row["memory_type"], row["trust"], row["lines"]) == ("decision", "assistant", [2, 1])


def test_agreeing_to_a_step_is_no_decision(events: Shown) -> None:
    rows = events(text("All done. Should I commit this and push it now?"), prompt("yes"))
    assert all(row["confidence"] < 0.5 for row in rows if row["layer"].endswith(":agreed"))
