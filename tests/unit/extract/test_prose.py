"""Layer 2: what is kept of prose, and what is not."""

import pytest

from tests.sessions import call, prompt, said, text
from tests.shown import Shown

FACT = "Tides are kept in `tides.db` instead of one file a day because the curve needs a whole month."


def kept(rows: list[dict]) -> str:
    return "\n".join(row["text"] for row in rows)


def test_a_decision_is_kept_with_reason_and_what_lost(shown: Shown) -> None:
    (found,) = shown(text(FACT))
    assert found["text"] == FACT
    assert found["reason"] == "the curve needs a whole month"
    assert found["rejected"].startswith("one file a day")
    assert found["files"] == []


@pytest.mark.parametrize(
    "narration",
    [
        "Let me first read the file to understand the loader.",
        "I decided to read the file.",
        "Now I'll update the test to use the new loader.",
        "I'll modify the check to allow failures for now.",
        "Would you like me to commit these changes?",
        "Likely culprits for the delay: the loader, the gauge client.",
    ],
)
def test_narration_stopgaps_and_guesses_are_not_kept(shown: Shown, narration: str) -> None:
    assert shown(text(narration), call("Read", "loader.py")) == []


def test_success_that_the_person_refutes_is_not_kept(shown: Shown) -> None:
    rows = shown(
        text("Perfect! All 12 tests pass and the tide curve is complete."),
        prompt("No, the curve is still broken on the harbour page."),
    )
    assert "All 12 tests pass" not in kept(rows)


def test_a_correction_is_the_persons_and_its_answer_another_statement(shown: Shown) -> None:
    answer = (
        "The gauge client now subscribes to the push feed instead of polling, because polling missed levels."
    )
    rows = shown(prompt("No, please don't poll the gauge; use the push feed instead."), text(answer))
    correction = next(row for row in rows if "poll the gauge; use" in row["text"])
    assert (correction["trust"], correction["lines"]) == ("user", [1])
    assert all("poll the gauge; use" not in row["text"] for row in rows if row["trust"] == "assistant")


def test_pasted_logs_are_not_the_persons_words(events: Shown) -> None:
    rows = events(prompt("The import fails.\n12:01:33 ERROR never use the old gauge\n$ make import"))
    assert all("old gauge" not in row["text"] for row in rows)


@pytest.mark.parametrize("kind", ["summary", "recap", "program", "thinking", "tool_result"])
def test_what_nobody_said_in_the_session_makes_no_memory(events: Shown, kind: str) -> None:
    assert events(said(kind, FACT)) == []


def test_a_rewound_branch_gives_nothing(shown: Shown) -> None:
    rows = shown(
        prompt("I like the idea of one file a day very much.", parent_uuid="root"),
        text("One file a day keeps every import independent of the others."),
        prompt("I don't like the idea of one file a day.", parent_uuid="root"),
    )
    assert "very much" not in kept(rows)
    assert "independent" not in kept(rows)
    assert "Does not like the idea" in kept(rows)


def test_a_name_that_was_changed_later_is_not_shown(shown: Shown) -> None:
    rows = shown(
        prompt("We also rename the repository to tidepool-old, so the imports should use that."),
        prompt("We renamed it once more from reef/tidepool-old to reef/tidepool, please fix the names."),
    )
    assert "We also rename" not in kept(rows)


def test_a_wish_about_the_way_of_working_is_global_and_one_about_a_tool_is_not(shown: Shown) -> None:
    (everywhere,) = shown(prompt("I always prefer small steps, never one big change."))
    (here,) = shown(prompt("I always prefer pnpm in this repository, never npm."))
    assert (everywhere["category"], here["category"]) == ("global", "project")


def test_korean_is_read_with_its_own_markers(events: Shown) -> None:
    rows = events(
        text("조석 데이터는 파일 대신 SQLite에 저장하기로 결정했습니다. 한 달 전체가 필요하기 때문입니다.")
    )
    assert {row["layer"] for row in rows} == {"layer2:ko"}


def test_words_that_stop_a_call_say_how_it_is_done_here_unless_only_for_now(events: Shown) -> None:
    def refused(words: str) -> str:
        asked, _ = call("Bash", "npm run lint")
        rows = events([asked], said("rejection", words, tool_use_id=asked["tool_use_id"]))
        return next(row["memory_type"] for row in rows if words in row["text"])

    assert refused("run the whole suite on the small gauge first") == "pattern"
    assert refused("don't worry about linting for now, just continue") == "progress"


@pytest.mark.parametrize(
    "asked",
    [
        "Implement the fix of the tide table in a new branch, do meaningful commits.",
        "let's also verify that the gauge's tests still work with the mast",
        "I see no use of the gauge's cache in our code. Tell me where we should add it.",
        "Explícame cómo se calcula la marea en la página del puerto.",
    ],
)
def test_a_request_that_is_done_when_it_is_answered_is_no_decision(shown: Shown, asked: str) -> None:
    rows = shown(prompt(asked), text("Done: the tide table is repaired."))
    assert not [row for row in rows if row["memory_type"] == "decision"]


def test_a_request_that_says_what_to_keep_stays_a_decision(shown: Shown) -> None:
    asked = "Review the tide table. We should use the harbour's own colours instead of the theme's."
    assert [row for row in shown(prompt(asked), text("Done.")) if row["memory_type"] == "decision"]
