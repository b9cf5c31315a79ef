"""A choice is a statement of what holds since; how a session goes on is none."""

from typing import Any

import pytest

from cortex.transforms.extract.answers import _topic
from tests.examples import cases
from tests.sessions import Said, call, said
from tests.shown import Shown

OPTIONS = {"SQLite": "One file, which the backup takes along.", "Postgres": "A server of its own."}


def answered(
    question: str, answer: str, options: dict[str, str] = OPTIONS, header: str = ""
) -> list[Said | list[Said]]:
    """Return a question of the assistant and what the person answered."""
    given = [{"label": label, "description": description} for label, description in options.items()]
    asked = {"question": question, "header": header, "options": given}
    asking, result = call("AskUserQuestion", "", "answered", questions=[asked])
    return [[asking, result], said("choice", f"{question} → {answer}", tool_use_id=asking["tool_use_id"])]


def chosen(events: Shown, *turns: Any) -> dict[str, Any]:
    """Return the one event that a choice makes."""
    (row,) = [row for row in events(*turns) if row["layer"] == "layer1:choice"]
    return row


def test_a_choice_says_for_what_and_what_was_turned_down_and_why(shown: Shown) -> None:
    row = chosen(shown, *answered("Where should the tides be kept?", "SQLite", header="Store"))
    assert row["text"] == (
        "For where the tides should be kept: SQLite, not Postgres. One file, which the backup takes along."
    )
    assert (row["rejected"], row["reason"]) == ("Postgres", "One file, which the backup takes along.")
    assert (row["memory_type"], row["trust"], row["lines"]) == ("decision", "user", [3, 1])


@cases(
    ("question", "topic"),
    [
        (
            "How should broken readings be shown on the page?",
            "how broken readings should be shown on the page",
        ),
        ("Which store do you want to use for the tides?", "store for the tides"),
        ("Which gauges should be read at night?", "gauges that should be read at night"),
        ("Windows build?", "Windows build"),
        ("Should old levels be kept?", "whether old levels should be kept"),
        ("What is kept? The disk holds a year of levels, so something has to go.", "What is kept"),
    ],
)
def test_a_question_is_read_as_what_it_asks_about(question: str, topic: str) -> None:
    assert _topic(question, "Levels") == topic


def test_an_option_is_named_without_its_letter_and_its_recommendation(shown: Shown) -> None:
    options = {"Option A: one file (Recommended)": "", "Option B: a server": ""}
    row = chosen(shown, *answered("Store of the tides?", "Option A: one file (Recommended)", options))
    assert row["text"] == "For Store of the tides: one file, not a server."


def test_own_words_are_the_answer(shown: Shown) -> None:
    row = chosen(shown, *answered("Store of the tides?", "Parquet files, one a month"))
    assert row["text"] == "For Store of the tides: Parquet files, one a month."
    assert row["rejected"] is None


def test_several_may_be_chosen_with_a_note(shown: Shown) -> None:
    row = chosen(shown, *answered("Store of the tides?", "SQLite, Postgres (the server only for reports)"))
    assert row["text"].startswith("For Store of the tides: SQLite and Postgres.")
    assert "The person adds: the server only for reports" in row["text"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("The plan is ready. What would you like to do next?", "SQLite"),
        ("Which file should I start with?", "Postgres"),
        ("Should I commit this now?", "SQLite"),
        ("Where should the tides be kept?", "you decide"),
        ("Where should the tides be kept?", "What does a server cost?"),
        ("Where should the tides be kept?", "どちらでも"),
    ],
)
def test_how_to_go_on_is_no_decision_and_never_shown(events: Shown, question: str, answer: str) -> None:
    row = chosen(events, *answered(question, answer))
    assert row["memory_type"] is None
    assert row["confidence"] < 0.5


def test_an_option_to_talk_first_settles_nothing(events: Shown) -> None:
    options = {"One file": "", "Let me explain the problem first": ""}
    row = chosen(events, *answered("Store of the tides?", "Let me explain the problem first", options))
    assert row["confidence"] < 0.5
