"""What several turns say together: duplicates, rewinds, calls with their results."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cortex.transforms.extract.events import deduplicated, mark_rewound
from cortex.transforms.schemas import TURNS


def turn(turn_id: str, line: int, kind: str = "prompt", **columns: Any) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "project_id": "p1",
        "session_id": "s1",
        "file": "a.jsonl",
        "line": line,
        "block": 0,
        "kind": kind,
        "text": turn_id,
        "trust": "user",
        "redactions": 0,
        "reader_version": 1,
    } | columns


def turns(*rows: dict[str, Any]) -> pa.Table:
    return TURNS.of(list(rows))


def test_of_a_turn_that_was_read_twice_the_first_by_file_and_line_stays():
    copies = turns(turn("x", 9, file="b.jsonl"), turn("x", 7), turn("x", 3), turn("y", 5))
    kept = deduplicated(copies)
    assert kept.schema == TURNS.arrow
    assert [(row["turn_id"], row["file"], row["line"]) for row in kept.to_pylist()] == [
        ("x", "a.jsonl", 3),
        ("y", "a.jsonl", 5),
    ]


def test_everything_between_two_prompts_with_one_parent_is_rewound():
    rows = turns(
        turn("before", 1, parent_uuid=None),
        turn("wrong", 2, parent_uuid="u1"),
        turn("answer", 3, "text", parent_uuid="u2"),
        turn("more", 4, parent_uuid="u3"),
        turn("right", 6, parent_uuid="u1"),
        turn("after", 7, "text", parent_uuid="u6"),
    )
    assert mark_rewound(rows) == {"wrong", "answer", "more"}


def test_the_last_of_several_tries_counts():
    rows = turns(*[turn(f"try{line}", line, parent_uuid="u1") for line in (2, 4, 6)])
    assert mark_rewound(rows) == {"try2", "try4"}


def test_a_rewound_plan_hand_over_is_rewound():
    rows = turns(turn("first", 2, "plan", parent_uuid="u1"), turn("second", 4, "plan", parent_uuid="u1"))
    assert mark_rewound(rows) == {"first"}


def test_prompts_without_a_parent_are_no_rewind():
    assert mark_rewound(turns(turn("a", 1), turn("b", 2))) == frozenset()


def test_parallel_results_commands_and_answers_to_calls_are_no_rewind():
    rows = turns(
        turn("r1", 2, "tool_result", parent_uuid="u1", tool_use_id="t1"),
        turn("r2", 3, "tool_result", parent_uuid="u1", tool_use_id="t2"),
        turn("plan", 4, "plan", parent_uuid="u1", tool_use_id="t3"),
        turn("model", 5, "command", parent_uuid="u1"),
        turn("prompt", 6, parent_uuid="u1"),
    )
    assert mark_rewound(rows) == frozenset()


def test_a_resumed_copy_of_a_prompt_is_no_rewind():
    rows = turns(turn("a", 2, parent_uuid="u1"), turn("b", 3, "text"), turn("a", 8, parent_uuid="u1"))
    assert mark_rewound(rows) == frozenset()


def test_other_files_sessions_and_subagents_are_no_rewind():
    rows = turns(
        turn("a", 1, parent_uuid="u1"),
        turn("b", 2, parent_uuid="u1", session_id="s2"),
        turn("c", 3, parent_uuid="u1", file="b.jsonl"),
        turn("d", 4, parent_uuid="u1", agent_id="sidechain"),
    )
    assert mark_rewound(rows) == frozenset()


def call(use_id: str, line: int, **columns: Any) -> dict[str, Any]:
    return turn(f"call-{use_id}-{line}", line, "tool_call", tool_use_id=use_id, tool_name="Bash", **columns)


def result(use_id: str, line: int, **columns: Any) -> dict[str, Any]:
    columns = {"tool_status": "ok", "trust": "tool"} | columns
    return turn(f"result-{use_id}-{line}", line, "tool_result", tool_use_id=use_id, **columns)


def test_of_no_turns_nothing_is_found():
    assert deduplicated(TURNS.empty()).schema == TURNS.arrow
    assert mark_rewound(TURNS.empty()) == frozenset()


ROWS = [
    turn("a", 1, parent_uuid="u1"),
    call("t1", 2),
    result("t1", 3),
    turn("b", 4, parent_uuid="u1"),
    turn("b", 9, parent_uuid="u8"),
    call("t2", 5),
    result("t2", 6, file="b.jsonl"),
]


@given(order=st.permutations(ROWS))
def test_the_order_of_rows_does_not_matter(order: list[dict[str, Any]]):
    shuffled, straight = turns(*order), turns(*ROWS)
    assert deduplicated(shuffled).equals(deduplicated(straight))
    assert mark_rewound(shuffled) == mark_rewound(straight)
