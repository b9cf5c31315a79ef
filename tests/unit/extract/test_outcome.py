"""The outcome record: what a session came to, for the one who comes back."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.hooks.evidence.statements import outcome_parts
from cortex.transforms.extract.events import extract_events
from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, JOURNAL
from tests.sessions import Said, call, prompt, said, session, text
from tests.shown import Shown

EDIT = call("Edit", "harbour.py")
TABLE = prompt("Can you please add a tide table to the harbour page?")
REPORT = text("I've successfully added the tide table below the map.")


def commit(subject: str, name: str) -> list[Said]:
    """Return a commit that the assistant made."""
    return call("Bash", f"git commit -m '{subject}'", f"[main {name}] {subject}\n 1 file changed")


def record(shown: Shown, *turns: Said | list[Said]) -> dict[str, str]:
    """Return the parts of the one outcome record of a session; none if it has no record."""
    records = [row for row in shown(*turns) if row["memory_type"] == "outcome"]
    assert len(records) <= 1
    return outcome_parts(records[0]["text"]) if records else {}


def test_a_session_leaves_one_record_of_goal_outcome_and_what_is_open(shown: Shown) -> None:
    tests = call("Bash", "pytest -q", "12 passed")
    report = text("I've successfully added the tide table below the map. Want me to translate its headings?")
    assert record(shown, TABLE, EDIT, tests, commit("Add a tide table", "1a2b3c4"), report) == {
        "goal": "Add a tide table to the harbour page",
        "outcome": "Committed: Add a tide table (1a2b3c4); `pytest` passes",
        "open": "not pushed; offered, unanswered: translate its headings",
    }


def test_a_session_that_changed_nothing_leaves_no_record(shown: Shown) -> None:
    answer = text("The harbour page shows the tides of the next three days.")
    assert record(shown, prompt("Can you please look at the harbour page?"), answer) == {}


def test_what_a_tag_reports_is_a_memory_of_its_own_and_not_said_again(shown: Shown) -> None:
    tag = "[MEMORY: gotcha] The tide table counts hours from local midnight, not UTC."
    deed = "I've successfully added the tide table below the map."
    report = text(f"{deed}\n\nWant me to translate its headings?\n\n{tag}")
    rows = shown(TABLE, EDIT, report)
    assert [row["memory_type"] for row in rows if "local midnight" in row["text"]] == ["gotcha"]
    parts = record(shown, TABLE, EDIT, report)
    assert parts["outcome"] == "changed harbour.py"
    assert parts["open"] == "offered, unanswered: translate its headings"


def test_a_pushed_commit_is_not_open(shown: Shown) -> None:
    turns = (TABLE, EDIT, commit("Add a tide table", "1a2b3c4"), call("Bash", "git push"), REPORT)
    assert "open" not in record(shown, *turns)


def test_edits_after_the_last_commit_are_open(shown: Shown) -> None:
    turns = (TABLE, EDIT, commit("Add a tide table", "1a2b3c4"), call("Edit", "map.py"), REPORT)
    assert record(shown, *turns)["open"] == "not pushed"


def test_a_check_that_passed_before_the_last_edit_proves_nothing(shown: Shown) -> None:
    tests = call("Bash", "pytest -q", "12 passed")
    assert "passes" in record(shown, TABLE, EDIT, tests, REPORT)["outcome"]
    assert "passes" not in record(shown, TABLE, tests, EDIT, REPORT)["outcome"]


def test_a_check_that_failed_last_is_open(shown: Shown) -> None:
    red = call("Bash", "pytest -q", "1 failed, 11 passed", status="error")
    assert record(shown, TABLE, EDIT, red, REPORT)["open"] == "`pytest` failed when it last ran"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("uv run pytest tests/test_tide.py -q 2>&1 | tail -3", "pytest tests/test_tide.py"),
        ('pytest -m "not (slow or browser)" -v', 'pytest -m "not (slow or browser)"'),
        ("go test -race ./gauge/...", "go test ./gauge/..."),
        ("go test ./...", "go test"),
        ("pytest -n 4 --tb short", "pytest"),
        ("(cd app && npm run test)", "npm run test"),
    ],
)
def test_a_check_of_a_part_is_named_with_the_part(shown: Shown, command: str, named: str) -> None:
    outcome = record(shown, TABLE, EDIT, call("Bash", command, "12 passed"), REPORT)["outcome"]
    assert f"`{named}` passes" in outcome


def test_a_part_that_passes_does_not_hide_that_the_whole_failed(shown: Shown) -> None:
    whole = call("Bash", "pytest", "1 failed, 11 passed", status="error")
    part = call("Bash", "pytest tests/test_tide.py", "2 passed")
    assert record(shown, TABLE, EDIT, whole, part, REPORT)["open"] == "`pytest` failed when it last ran"


def test_what_a_person_ran_themselves_counts_and_a_verdict_that_nobody_saw_says_nothing(shown: Shown) -> None:
    commit = said("shell", "git commit -m 'Read decimals of the gauge'")
    parts = record(shown, TABLE, EDIT, REPORT, commit, said("shell", "git push"), said("shell", "pytest"))
    assert parts["outcome"].startswith("Committed: Read decimals of the gauge")
    assert "open" not in parts


def test_a_check_that_a_person_stopped_is_open_until_it_runs(shown: Shown) -> None:
    stopped = call("Bash", "pytest tests 2>&1", "", status="rejected")
    assert record(shown, TABLE, EDIT, stopped, REPORT)["open"] == "`pytest tests` was stopped by the user"
    assert "open" not in record(shown, TABLE, EDIT, stopped, call("Bash", "pytest tests", "9 passed"), REPORT)


def test_what_a_person_says_when_they_stop_a_check_stands_with_it(shown: Shown) -> None:
    look = call("Bash", "which python3", "", status="rejected")
    checked = call("Bash", "npm run lint", "", status="rejected")
    words = said("rejection", "no lint for now, just go on", tool_use_id=checked[0]["tool_use_id"])
    assert record(shown, TABLE, EDIT, look, checked, words, REPORT)["open"] == (
        '`npm run lint` was stopped by the user: "no lint for now, just go on"'
    )


PLAN = said(
    "plan",
    "# Add a tide table\n\nAs in `old.py`.\n\n1. **`page.html`** - the table\n2. Update `docs/page.md`\n",
)


def test_a_file_that_the_plan_lists_and_nobody_changed_is_open(shown: Shown) -> None:
    page = call("Edit", "/src/page.html", "done")
    assert record(shown, TABLE, PLAN, page, REPORT)["open"] == "planned, not changed: page.md"
    assert "open" not in record(shown, TABLE, PLAN, page, call("Write", "/src/docs/page.md", "done"), REPORT)
    again = call("Bash", "git mv docs/page.md page.md", "done")
    assert "open" not in record(shown, TABLE, PLAN, page, again, REPORT)


def test_a_plan_that_was_not_begun_or_that_subagents_worked_on_names_no_file(shown: Shown) -> None:
    page, agent = call("Edit", "/src/page.html", "done"), call("Task", "Write the docs", "done")
    assert "open" not in record(shown, TABLE, PLAN, EDIT, REPORT)
    assert "open" not in record(shown, TABLE, PLAN, page, agent, REPORT)


def test_a_plan_put_again_counts_what_was_changed_since_it_was_put_first(shown: Shown) -> None:
    page, docs = call("Edit", "/src/page.html", "done"), call("Edit", "/src/docs/page.md", "done")
    assert "open" not in record(shown, TABLE, PLAN, docs, PLAN, page, REPORT)


def test_what_was_stashed_and_not_taken_back_is_open(shown: Shown) -> None:
    stash, back = call("Bash", "git stash", "Saved"), call("Bash", "git stash pop", "Dropped")
    assert "changes are stashed" in record(shown, TABLE, EDIT, REPORT, stash)["open"]
    assert "stashed" not in record(shown, TABLE, EDIT, REPORT, stash, back)["open"]


def test_a_last_request_that_nobody_answered_is_open(shown: Shown) -> None:
    last = prompt("Please move the tide table above the map.")
    assert record(shown, TABLE, EDIT, REPORT, last)["open"] == (
        "asked last, not seen done: move the tide table above the map"
    )


def test_an_offer_that_was_accepted_last_is_open(shown: Shown) -> None:
    offer = text("Added the tide table below the map. Should I publish the harbour page?")
    assert record(shown, TABLE, EDIT, offer, prompt("yes"))["open"] == (
        "asked last, not seen done: publish the harbour page"
    )


def test_the_assistants_report_is_no_fact_of_the_record(shown: Shown) -> None:
    report = text(
        "Added the tide table below the map.\n\n## Next steps\n- Translate the headings of the table"
    )
    assert record(shown, TABLE, EDIT, report) == {
        "goal": "Add a tide table to the harbour page",
        "outcome": "changed harbour.py",
    }


def test_a_fault_that_a_person_reports_last_is_open_and_no_gotcha(shown: Shown) -> None:
    turns = (TABLE, EDIT, REPORT, prompt("The table still fails on the second harbour."), EDIT, REPORT)
    rows = shown(*turns)
    assert record(shown, *turns)["open"] == (
        'reported last by the user, not confirmed mended: "The table still fails on the second harbour"'
    )
    assert not [row for row in rows if row["memory_type"] == "gotcha"]


def test_a_request_in_no_known_form_is_quoted(shown: Shown) -> None:
    asked = prompt("The harbour page has nothing on tides so far.")
    assert record(shown, asked, EDIT, REPORT)["goal"] == '"The harbour page has nothing on tides so far"'


def test_a_question_or_a_chore_is_no_goal(shown: Shown) -> None:
    steps = (prompt("Do we need a column for the moon?"), EDIT, REPORT, prompt("commit this"))
    turns = (TABLE, EDIT, REPORT, *steps, commit("Add a tide table", "1a2b3c4"), REPORT)
    assert record(shown, *turns)["goal"] == "Add a tide table to the harbour page"


def test_the_last_recap_tells_the_outcome_in_its_words(shown: Shown) -> None:
    recap = said(
        "recap",
        "Goal: show the tides at the harbour. Added a table below the map. Next: translate its headings.",
        trust="assistant",
    )
    assert record(shown, TABLE, EDIT, REPORT, recap) == {
        "goal": "Show the tides at the harbour",
        "outcome": "Added a table below the map",
        "open": "Translate its headings",
    }


def test_a_recap_that_work_followed_is_overtaken(shown: Shown) -> None:
    recap = said("recap", "Planned a table below the map. Next: build it.", trust="assistant")
    assert record(shown, TABLE, EDIT, text("Planned it."), recap, EDIT, REPORT)["outcome"] == (
        "changed harbour.py"
    )


def test_a_semicolon_parts_statements_and_stands_in_none(shown: Shown) -> None:
    recap = said("recap", "Dropped the moon; the tides stay as they are.", trust="assistant")
    assert record(shown, TABLE, EDIT, REPORT, recap)["outcome"].startswith(
        "Dropped the moon, the tides stay as they are"
    )


def test_a_short_order_that_was_under_way_is_open_in_its_words(shown: Shown) -> None:
    turns = (TABLE, EDIT, REPORT, prompt("ship it"), call("Bash", "git status"))
    assert record(shown, *turns)["open"] == 'asked last, not seen done: "ship it"'


def test_words_of_a_session_cannot_open_a_part_of_the_record(shown: Shown) -> None:
    recap = said("recap", "Added a page. Open: nothing at all here. Goal: none of these.", trust="assistant")
    parts = record(shown, TABLE, EDIT, REPORT, recap)
    assert parts["outcome"].startswith("Added a page") and "nothing at all" not in parts.get("open", "")


PIECES: list[Said | list[Said]] = [
    TABLE,
    prompt("Please move the tide table above the map."),
    prompt("yes"),
    EDIT,
    commit("Add a tide table", "1a2b3c4"),
    call("Bash", "pytest -q", "1 failed", status="error"),
    call("Bash", "git push"),
    REPORT,
    text("Moved the tide table above the map. Should I publish the harbour page?"),
    said("recap", "Added a table below the map. Next: translate its headings.", trust="assistant"),
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=8), st.data())
def test_a_session_read_again_when_it_has_grown_has_the_record_of_the_whole(
    policy: Policy, turns: list[Said | list[Said]], data: Any
) -> None:
    cut = data.draw(st.integers(1, len(turns)))
    before, whole = (extract_events(session(*given), policy) for given in (turns[:cut], turns))
    at_once = outcomes(whole, policy)
    if at_once:
        assert outcomes(pa.concat_tables([before, whole]), policy) == at_once


def outcomes(events: pa.Table, policy: Policy) -> list[tuple[str, str]]:
    """Return id and text of the outcome memories that EVENTS rows make."""
    rows = {row["event_id"]: row for row in events.to_pylist()}
    memories = fold(EVENTS.of(list(rows.values())), JOURNAL.empty(), policy).to_pylist()
    return [(row["memory_id"], row["text"]) for row in memories if row["memory_type"] == "outcome"]
