"""What a person says for good is a memory of its own, and the steps of a plan keep their order."""

from datetime import timedelta

import pytest

from cortex.transforms.brief.wording import plan_forms
from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, JOURNAL
from tests.rows import START
from tests.sessions import call, prompt, text
from tests.shown import Shown

UNRELATED = text("The tide table is read from `levels.csv`, whose hours are counted from local midnight.")


@pytest.mark.parametrize(
    ("wish", "category"),
    [
        ("From now on always run ruff before you commit.", "project"),
        ("I prefer tabs over spaces, in every repository.", "global"),
        ("Please never push without asking me first.", "project"),
        ("Always use uv.", "project"),
        ("I do not want to sign my commits anymore.", "project"),
        ("In all my projects use conventional commit messages.", "global"),
        ("From now on always run ruff before each commit, in all my repositories.", "global"),
        ("Going forward, keep answers short.", "project"),
        ("Never mock the database in tests of this project.", "project"),
        ("앞으로 커밋 메시지는 한국어로 작성해 주세요.", "project"),
    ],
)
def test_a_wish_for_good_stands_by_itself_and_is_the_persons(shown: Shown, wish: str, category: str) -> None:
    rows = shown(
        prompt(f"Why is the tide table an hour off? {wish} Then look at the gauge, please."), UNRELATED
    )
    statement = wish.removeprefix("Please ")
    statement = statement[0].upper() + statement[1:]
    [row] = [row for row in rows if row["text"] == statement]
    assert (row["memory_type"], row["event_type"], row["trust"], row["category"]) == (
        "pattern",
        "PREFERENCE_NOTED",
        "user",
        category,
    )
    assert row["confidence"] >= 0.9 and sum(statement in other["text"] for other in rows) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Never mind the gauge, it is fine as it is.",
        "Should we always run ruff before each commit?",
        "For now always run the tests without a network.",
        "The parser always returns None for an empty table.",
        "I prefer option 2, the one with a queue.",
        "It never worked on the second harbour, everywhere else it does.",
    ],
)
def test_what_holds_for_the_hour_or_tells_of_code_is_no_wish(events: Shown, words: str) -> None:
    rows = events(prompt(words), UNRELATED)
    assert not [row for row in rows if row["text"] == words and row["confidence"] >= 0.9]


def test_a_wish_that_is_taken_back_is_not_sure_of_itself(events: Shown) -> None:
    wish = "From now on always run the slow tests too."
    rows = events(prompt(wish), text("Will do."), prompt("Never mind, scrap that."))
    assert [row["memory_type"] for row in rows if row["text"] == wish] == [None]


@pytest.mark.parametrize(
    ("words", "category"),
    [
        ("The user likes short answers.", "project"),
        ("Answers in this project are in Korean.", "project"),
        ("Levels are checked with `make levels`.", "project"),
        ("Commit messages start with a verb, in every repository.", "global"),
    ],
)
def test_a_preference_that_the_assistant_tags_is_global_where_it_says_so(
    shown: Shown, words: str, category: str
) -> None:
    [row] = shown(text(f"[MEMORY: preference] {words}"))
    assert (row["category"], row["memory_type"]) == (category, "pattern")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "Move the levels: 1. write the schema 2. copy the rows 3. drop the files",
            "Plan: Move the levels. Next: write the schema; copy the rows; drop the files.",
        ),
        (
            "Write the schema, then copy the rows, then drop the files.",
            "Plan: Write the schema. Next: Write the schema; copy the rows; drop the files.",
        ),
        (
            "The import moves to a queue next week.",
            "Plan: The import moves to a queue next week. Next: The import moves to a queue next week.",
        ),
    ],
)
def test_a_tagged_plan_is_a_living_plan(shown: Shown, policy: Policy, words: str, line: str) -> None:
    rows = shown(text(f"[MEMORY: plan] {words}"))
    [memory] = fold(EVENTS.of(rows), JOURNAL.empty(), policy).to_pylist()
    assert (memory["memory_type"], memory["text"]) == ("progress", line)


def test_a_plan_of_one_step_is_said_once_in_a_brief(shown: Shown, policy: Policy) -> None:
    rows = shown(text("[MEMORY: plan] The import moves to a queue next week."))
    [memory] = fold(EVENTS.of(rows), JOURNAL.empty(), policy).to_pylist()
    assert plan_forms(memory, policy)[0].count("queue") == 1


def todo(**statuses: str) -> list[dict[str, str]]:
    return [{"content": step.replace("_", " "), "status": status} for step, status in statuses.items()]


def test_the_steps_of_one_call_keep_their_order(shown: Shown, policy: Policy) -> None:
    names = [f"Carve_{word}_handle" for word in ("walnut", "ash", "birch", "oak", "elm", "pine", "larch")]
    rows = shown(call("TodoWrite", "", "ok", todos=todo(**dict.fromkeys(names, "pending"))))
    [memory] = fold(EVENTS.of(rows[::-1]), JOURNAL.empty(), policy).to_pylist()
    told = "; ".join(name.replace("_", " ") for name in names)
    assert memory["text"] == f"Plan: {names[0].replace('_', ' ')}. Next: {told}."
    assert all(row["said_at"] - START < timedelta(minutes=1, seconds=1) for row in rows)


def test_a_rewritten_list_gives_the_order(shown: Shown, policy: Policy) -> None:
    first = call("TodoWrite", "", "a", todos=todo(Carve_the_handle="pending", Sand_the_handle="pending"))
    second = call(
        "TodoWrite",
        "",
        "b",
        todos=todo(Dry_the_wood="completed", Carve_the_handle="in_progress", Sand_the_handle="in_progress"),
    )
    rows = shown(first, second)
    [memory] = fold(EVENTS.of(rows), JOURNAL.empty(), policy).to_pylist()
    assert memory["text"].endswith("Done: Dry the wood. Now: Carve the handle; Sand the handle.")
