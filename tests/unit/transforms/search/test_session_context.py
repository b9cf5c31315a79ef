"""What a session holds next to a result: the reply to a person's question, the command that was run."""

import json
import re
from typing import Any

from cortex.flows.recalling.recall_search import question_of
from cortex.flows.recalling.session_context import command_for, reply_to
from cortex.storage.settings.reference import read_policy
from tests.examples import cases

ANNOUNCES = re.compile(r"^(?:let me|i'll)\b", re.IGNORECASE)


def said(line: int, text: str, kind: str = "text") -> dict[str, Any]:
    return {
        "line": line,
        "text": text,
        "kind": kind,
        "tool_name": None,
        "tool_use_id": None,
        "tool_status": None,
    }


def run(
    line: int, command: str, *, purpose: str = "", tool: str = "Bash", status: str = "ok"
) -> list[dict[str, Any]]:
    call = {**said(line, command, "tool_call"), "tool_name": tool, "tool_use_id": f"u{line}"}
    result = {**said(line + 1, "", "tool_result"), "tool_use_id": f"u{line}", "tool_status": status}
    return [{**call, "tool_input": json.dumps({"description": purpose})}, result]


def text_of(turn: dict[str, Any] | None) -> str | None:
    return None if turn is None else turn["text"]


def test_the_reply_to_a_persons_question_is_what_the_assistant_says_next() -> None:
    turns = [
        said(4, "Could one gauge be enough for the harbour?", "prompt"),
        said(9, "You are right, one gauge is enough."),
    ]
    assert text_of(reply_to(4, turns, ANNOUNCES)) == "You are right, one gauge is enough."


@cases(
    ("first", "second"),
    [
        (said(4, "One gauge is enough.", "prompt"), said(5, "Agreed, one gauge is enough then.")),
        (said(4, "Is one gauge enough?"), said(5, "Agreed, one gauge is enough then.")),
        (said(4, "Is one gauge enough?", "prompt"), said(90, "Agreed, one gauge is enough then.")),
        (said(4, "Is one gauge enough?", "prompt"), said(5, "And the pier?", "prompt")),
        (
            said(4, "Is one gauge enough?", "prompt"),
            said(5, "Good question! Let me look at the gauges first."),
        ),
    ],
)
def test_statements_the_assistants_questions_and_announcements_have_no_reply(first: Any, second: Any) -> None:
    assert reply_to(4, [first, second], ANNOUNCES) is None


def command(turns: list[dict[str, Any]], *, shown: str = "", lines: tuple[int, ...] = (10,)) -> str | None:
    asked = question_of("How do I run the gauge tests?", read_policy(None)).asked
    return text_of(command_for(lines, shown, turns, asked, within=25))


def test_the_command_right_behind_what_is_shown_is_the_one_that_was_run() -> None:
    assert (
        command([said(10, "The environment first."), *run(11, "source env && check")])
        == "source env && check"
    )


def test_a_command_of_a_program_named_in_backticks_is_found_from_afar() -> None:
    turns = [*run(2, "ls"), *run(4, "tidecheck --all"), said(10, "Done.")]
    assert command(turns, shown="Use `tidecheck` for it.") == "tidecheck --all"
    assert command(turns, shown="Use it.") is None


def test_of_several_commands_the_one_with_the_questions_words_is_taken_the_last_of_equals() -> None:
    turns = [
        said(10, "Now."),
        *run(11, "ls"),
        *run(13, "gaugetest -v"),
        *run(15, "lint", purpose="Check style"),
    ]
    assert command(turns) == "gaugetest -v"
    assert command([said(10, "Now."), *run(11, "make a"), *run(13, "make b")]) == "make b"


@cases(
    "calls",
    [
        run(11, "gaugetest", status="error"),
        run(11, "gaugetest", tool="Read"),
        run(11, "gaugetest " + "x" * 300),
        run(90, "gaugetest"),
    ],
)
def test_what_failed_is_no_command_is_a_script_or_stands_far_away_is_not_shown(calls: Any) -> None:
    assert command([said(10, "Now."), *calls]) is None


def test_an_input_that_cannot_be_read_says_nothing_of_a_command() -> None:
    [call, result] = run(11, "gaugetest")
    assert command([said(10, "Now."), {**call, "tool_input": "{"}, result]) == "gaugetest"
