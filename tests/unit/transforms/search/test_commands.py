"""Commands as passages: what ran with success is found by what it was for."""

import json

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.search import commands_run, embedded_text, passages_of
from tests.examples import cases
from tests.rows import turn, turns


def call(line: int, command: str, *, purpose: str = "", status: str = "ok") -> list[dict[str, object]]:
    """Return a call of the shell and its result."""
    given = json.dumps({"command": command, "description": purpose})
    ids = {"tool_use_id": f"t{line}"}
    return [
        turn(line, command, kind="tool_call", tool_name="Bash", tool_input=given, trust="assistant", **ids),
        turn(line + 1, "", kind="tool_result", tool_status=status, trust="tool", **ids),
    ]


def texts(*rows: dict[str, object]) -> list[str]:
    """Return what the commands of one transcript say."""
    return [str(row["text"]) for row in commands_run(turns(*rows).to_pylist())]


def test_a_command_that_went_well_is_told_with_its_purpose():
    rows = call(3, "cd /src && uv run pytest -q 2>&1 | tail -5", purpose="Run the tests.")
    assert texts(*rows) == ["Run the tests: `uv run pytest -q`"]


@cases("command", ["ls -la", "git status", "cat x.py", "x" * 300, "rm -r build"])
def test_what_only_looks_around_or_was_written_for_the_moment_is_left_out(command):
    assert texts(*call(3, command)) == []


@pytest.mark.parametrize("status", ["error", "rejected", "cancelled"])
def test_what_failed_is_left_out(status):
    assert texts(*call(3, "make test", status=status)) == []


def test_a_command_stands_once_where_it_ran_last():
    ran = turns(*call(3, "make test"), *call(9, "make lint"), *call(15, "make test")).to_pylist()
    assert [(row["text"], row["line"]) for row in commands_run(ran)] == [
        ("`make lint`", 9),
        ("`make test`", 15),
    ]


def test_a_command_is_never_embedded_and_nobodys_neighbour():
    rows = turns(turn(1, "Please test it."), *call(3, "make test"))
    said, ran = passages_of(rows, read_policy(None)).to_pylist()
    assert (said["kind"], ran["kind"], embedded_text(ran)) == ("prompt", "tool_call", "")
    assert ran["seq"] - said["seq"] > 1
