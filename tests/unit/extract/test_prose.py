"""Layer 2: what the assistant's prose marks is an event, found and quoted, and never a memory."""

import pytest

from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, JOURNAL
from tests.sessions import call, prompt, said, text
from tests.shown import Shown

CHOICE = "We chose `tides.db` instead of one file a day because the curve needs a whole month."


def prose(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["layer"].startswith("layer2") and not row["layer"].endswith(":user")]


def test_a_choice_in_prose_is_a_strong_event_with_reason_and_what_lost(events: Shown) -> None:
    (found,) = prose(events(text(CHOICE)))
    assert (found["event_type"], found["layer"], found["text"]) == ("DECISION_MADE", "layer2:en", CHOICE)
    assert found["confidence"] == 0.95
    assert found["reason"] == "the curve needs a whole month"
    assert found["rejected"].startswith("one file a day")


def test_a_weak_marker_alone_is_stored_below_what_is_shown(events: Shown) -> None:
    (found,) = prose(events(text("The levels of the harbour are replaced every night.")))
    assert 0.3 <= found["confidence"] < 0.5


def test_no_prose_of_the_assistant_makes_a_memory(events: Shown, policy: Policy) -> None:
    rows = prose(events(text(CHOICE), text("The root cause was the cache, which is never cleared.")))
    assert len(rows) == 2 and {row["memory_type"] for row in rows} == {None}
    assert fold(EVENTS.of(rows), JOURNAL.empty(), policy).num_rows == 0


@pytest.mark.parametrize(
    "words",
    [
        "Let me first read the file to understand the loader.",
        "I decided to read the file.",
        "I've decided to check the loader instead of the parser first.",
        "Now I'll update the test to use the new loader instead.",
        f"```\n{CHOICE}\n```",
        f"> {CHOICE}",
        f"The page says:\n\n<blockquote>\n{CHOICE}\n</blockquote>",
        "The tide is high at noon.",
    ],
)
def test_steps_code_and_quotations_mark_nothing(events: Shown, words: str) -> None:
    assert prose(events(text(words), call("Read", "loader.py"))) == []


@pytest.mark.parametrize("kind", ["summary", "recap", "program", "thinking", "tool_result"])
def test_what_nobody_said_in_the_session_marks_nothing(events: Shown, kind: str) -> None:
    assert events(said(kind, CHOICE)) == []


def test_a_rewound_branch_gives_nothing(events: Shown) -> None:
    rows = events(
        prompt("I like the idea of one file a day very much.", parent_uuid="root"),
        text("We chose one file a day, which keeps every import independent of the others."),
        prompt("I don't like the idea of one file a day.", parent_uuid="root"),
    )
    told = " ".join(row["text"] for row in rows)
    assert "very much" not in told and "independent" not in told and "don't like the idea" in told


def test_an_item_is_told_under_its_heading(events: Shown) -> None:
    (found,) = prose(events(text("## Storage\n\n- chose SQLite over Postgres, as nobody runs a server")))
    assert found["text"] == "Storage: chose SQLite over Postgres, as nobody runs a server"


def test_korean_is_read_with_its_own_markers(events: Shown) -> None:
    rows = events(
        text("조석 데이터는 파일 대신 SQLite에 저장하기로 결정했습니다. 한 달 전체가 필요하기 때문입니다.")
    )
    assert {row["layer"] for row in rows} == {"layer2:ko"}
