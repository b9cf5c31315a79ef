"""Layer 1: tool calls, answers, plans, commits."""

import pytest

from cortex.transforms.extract.plans import plan_continuity
from cortex.transforms.extract.structural import checks_text
from tests.sessions import call, prompt, said, text
from tests.shown import Shown


def of_type(rows: list[dict], event_type: str) -> list[str]:
    return [row["text"] for row in rows if row["event_type"] == event_type]


def test_only_calls_that_ran_leave_a_trace(events: Shown) -> None:
    rows = events(
        call("Edit", "gauge.py"),
        call("Edit", "refused.py", status="rejected"),
        call("Edit", "broken.py", status="error"),
        call("Bash", "make cancelled", status="cancelled"),
        call("Bash", "make tides"),
    )
    assert of_type(rows, "FILE_MODIFIED") == ["Changed gauge.py"]
    assert of_type(rows, "COMMAND_RUN") == ["Ran `make tides`"]


def test_a_file_read_often_is_one_event_with_all_its_lines(events: Shown) -> None:
    rows = events(call("Read", "gauge.py", "a"), call("Read", "gauge.py", "b"))
    (found,) = [row for row in rows if row["event_type"] == "FILE_EXPLORED"]
    assert (found["lines"], found["memory_type"], found["files"]) == ([1, 3], None, ["gauge.py"])


def test_a_commit_is_progress_with_its_hash_and_its_reason(events: Shown) -> None:
    command = "git commit -m 'Keep tides in SQLite' -m 'One file is enough, since nobody shares the gauge.'"
    rows = events(call("Bash", command, "[main 1a2b3c4] Keep tides in SQLite\n 1 file changed"))
    (found,) = [row for row in rows if row["event_type"] == "TASK_COMPLETED"]
    assert found["git_commit"] == "1a2b3c4"
    assert found["text"] == (
        "Committed 1a2b3c4 on main: Keep tides in SQLite. One file is enough, since nobody shares the gauge."
    )


def test_a_pull_request_is_progress(events: Shown) -> None:
    rows = events(
        call(
            "Bash", "gh pr create --title 'Keep tides' --body x", "https://forge.example/reef/tidepool/pull/7"
        )
    )
    assert "Opened PR #7: Keep tides (https://forge.example/reef/tidepool/pull/7)" in of_type(
        rows, "TASK_COMPLETED"
    )


def test_a_mended_failure_names_error_and_files_and_is_not_shown(events: Shown) -> None:
    rows = events(
        call("Bash", "pytest -q", "E   KeyError: 'tide'\n1 failed", status="error"),
        text("The loader drops the last column when the file ends without a newline."),
        call("Edit", "src/loader.py"),
        call("Bash", "pytest -q", "3 passed"),
    )
    (found,) = [
        row for row in rows if row["event_type"] == "ERROR_RESOLVED" and row["layer"] == "layer1:Bash"
    ]
    assert found["text"] == ("`pytest -q` failed (E KeyError: 'tide'). Passed after changes to loader.py.")
    assert found["confidence"] < 0.5
    assert found["files"] == ["src/loader.py"]


def test_a_failure_without_a_change_is_not_mended(events: Shown) -> None:
    rows = events(
        call("Bash", "pytest -q", "1 failed", status="error"),
        call("Bash", "pytest -q", "3 passed"),
    )
    assert of_type(rows, "ERROR_RESOLVED") == []


def plan_titles(rows: list[dict]) -> list[str]:
    return [row["text"] for row in rows if row["subject"] and row["event_type"] == "PLAN_CREATED"]


def test_a_plan_is_titled_with_what_most_of_its_steps_have_in_common(events: Shown) -> None:
    steps = ["Read the tide table", "Sort the tide table by hour", "Run tests"]
    todos = call("TodoWrite", "", todos=[{"content": step, "status": "pending"} for step in steps])
    rows = events(prompt("The hours are in no order."), todos)
    assert plan_titles(rows) == ["Plan: The tide table"]


@pytest.mark.parametrize(
    ("said_before", "title"),
    [
        ("Please build the tide curve for the harbour page.", "Build the tide curve for the harbour page"),
        ("Please make it the same as the curve.", "Read the gauge"),  # points back
        ("Can you look at the failing tests?", "Read the gauge"),  # a step on the way
    ],
)
def test_a_plan_has_the_words_of_who_asked_for_it_if_they_stand_alone(
    events: Shown, said_before: str, title: str
) -> None:
    steps = ["Read the gauge", "Store the tides", "Draw the curve"]
    given = [{"content": step, "status": "pending"} for step in steps]
    assert plan_titles(events(prompt(said_before), call("TodoWrite", "", todos=given))) == [f"Plan: {title}"]
    given[0]["status"] = "completed"  # begun in an earlier session, for what was asked for there
    resumed = events(prompt("Please add the tar support."), call("TodoWrite", "", todos=given))
    assert plan_titles(resumed) == ["Plan: Read the gauge"]


def test_a_todo_list_is_one_plan_with_its_steps(events: Shown) -> None:
    steps = ["Read the gauge", "Store the tides", "Draw the curve"]

    def todos(*statuses: str) -> list[dict]:
        given = [{"content": step, "status": status} for step, status in zip(steps, statuses, strict=True)]
        return call("TodoWrite", "", " ".join(statuses), todos=given)

    rows = events(
        prompt("Please build the tide curve for the harbour page."),
        todos("in_progress", "pending", "pending"),
        todos("completed", "in_progress", "pending"),
    )
    plan = [row for row in rows if row["subject"] and row["event_type"] == "PLAN_CREATED"]
    found = {row["text"]: row["step_status"] for row in rows if row["event_type"] == "PLAN_STEP_COMPLETED"}
    assert [row["text"] for row in plan] == ["Plan: Build the tide curve for the harbour page"]
    assert found == {
        "Read the gauge": "completed",
        "Store the tides": "in_progress",
        "Draw the curve": "pending",
    }
    assert {row["subject"] for row in rows if row["step_status"]} == {plan[0]["subject"]}


def test_a_checklist_in_prose_is_a_plan_whose_boxes_are_followed(events: Shown) -> None:
    rows = events(
        prompt("Draw the tide curve on the harbour page, please."),
        text("- [ ] Read the gauge\n- [ ] Draw the curve"),
        text("- [x] Read the gauge\n- [ ] Draw the curve"),
    )
    assert {row["text"]: row["step_status"] for row in rows if row["step_status"]} == {
        "Read the gauge": "completed",
        "Draw the curve": "pending",
    }


def test_a_plan_is_known_again_in_another_session(events: Shown) -> None:
    words = "# Plan: Draw the tide curve\n\nThe curve is drawn from the stored tides of one day."
    first = events(said("plan", words))
    second = events(prompt("Go on with it, please, where we stopped."), said("plan", words))
    subjects = {row["subject"] for row in [*first, *second] if row["layer"] == "layer1:plan"}
    assert len(subjects) == 1


def test_words_in_a_refused_call_are_kept_with_the_call(shown: Shown) -> None:
    refused = call("Bash", "npm install", "refused", status="rejected")
    words = said("rejection", "use pnpm, not npm", tool_use_id=refused[0]["tool_use_id"])
    (found,) = shown(refused, words)
    assert found["text"] == "Instead of `npm install`: use pnpm, not npm"
    assert found["trust"] == "user"


def checks(rows: list[dict]) -> list[str]:
    return [row["text"].partition(": ")[2] for row in rows if row["subject"] == "commands that worked"]


def test_each_check_is_told_in_the_way_it_is_mostly_run_and_of_the_whole(events: Shown) -> None:
    rows = events(
        call("Bash", "uv run pytest -q 2>&1 | grep -E 'passed|failed'", "12 passed"),
        call("Bash", "uv run pytest tests/test_tide.py", "2 passed"),
        call("Bash", "pytest -k tide", "2 passed"),
        call("Bash", "ruff check . && uv run pytest -q", "12 passed"),
        call("Bash", "ruff check .", "fine"),
    )
    assert checks(rows) == ["`uv run pytest -q`, `ruff check . && uv run pytest -q`"]


def test_what_leaves_slow_tests_out_is_how_the_rest_is_checked(events: Shown) -> None:
    assert checks(events(call("Bash", 'pytest -m "not slow"', "9 passed"))) == ['`pytest -m "not slow"`']
    assert checks(events(call("Bash", "pytest -m slow", "3 passed"))) == []
    assert checks(events(call("Bash", "act --platform linux/arm64 -j test", "ok"))) == [
        "`act --platform linux/arm64 -j test`"
    ]


def test_of_several_sessions_each_check_is_told_as_it_was_run_last() -> None:
    assert checks_text(["Checks: `uv run pytest -q`", "Checks: `pytest`, `mypy`, `mypy src`"]) == (
        "Commands that worked for checks and builds here: `uv run pytest -q`, `mypy`, `mypy src`"
    )


def test_steps_that_a_later_session_leaves_out_or_does_again_are_counted(events: Shown) -> None:
    def todos(**statuses: str) -> list[dict]:
        given = [{"content": f"{name} the harbour tides", "status": to} for name, to in statuses.items()]
        return call("TodoWrite", "", str(statuses), todos=given)

    first = events(todos(Read="completed", Store="pending", Draw="pending"), session_id="a")
    same = {"Read": "completed", "Store": "pending", "Draw": "pending"}
    assert plan_continuity([*first, *events(todos(**same), session_id="b")]) == {"b": (0, 0)}
    again = events(todos(Read="in_progress", Store="pending"), session_id="b")
    assert plan_continuity([*first, *again]) == {"b": (1, 1)}
    finished = events(
        todos(Read="pending", Store="pending", Draw="pending"), todos(**dict.fromkeys(same, "completed")),
        session_id="b",
    )  # fmt: skip
    assert plan_continuity([*first, *finished]) == {"b": (0, 1)}
