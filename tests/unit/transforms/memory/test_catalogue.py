"""Claims about the catalogue: sessions with what came of them, projects with how much they hold."""

from cortex.flows.publishing.database import ProjectFacts, project_rows, session_rows
from cortex.transforms.schemas import SESSIONS
from tests.rows import at, memories, memory, turn, turns

RECORD = "Goal: Add tides. Outcome: Tides are read; tests pass. Open: Not pushed."


def outcome(text: str, session_id: str, day: str):
    place = {"turn_id": "t1", "session_id": session_id, "file": "/t/a.jsonl", "lines": [1]}
    return memory(
        text,
        text,
        memory_type="outcome",
        updated_at=at(day),
        evidence=[{**place, "layer": "layer1:outcome", "said_at": None, "git_branch": None}],
    )


def test_a_session_has_its_ends_its_branch_and_its_prompts():
    rows = session_rows(
        turns(
            turn(1, "Add\n tides", kind="prompt", said_at=at("2026-09-01"), git_branch="main"),
            turn(2, "Done", kind="text", said_at=at("2026-09-03"), git_branch="tides"),
            turn(3, "Look", kind="prompt", said_at=at("2026-09-02"), agent_id="helper"),
        ),
        memories(),
    )
    [row] = rows.to_pylist()
    assert (row["began_at"], row["ended_at"]) == (at("2026-09-01"), at("2026-09-03"))
    assert (row["git_branch"], row["prompts"], row["first_prompt"]) == ("tides", 1, "Add tides")
    assert (row["goal"], row["outcome"], row["still_open"]) == (None, None, None)
    assert rows.schema.equals(SESSIONS.arrow)


def test_the_newest_outcome_record_of_a_session_counts():
    old = outcome("Outcome: Nothing yet.", turn(1)["session_id"], "2026-09-01")
    new = outcome(RECORD, turn(1)["session_id"], "2026-09-02")
    [row] = session_rows(turns(turn(1)), memories(new, old)).to_pylist()
    assert row["goal"] == "Add tides"
    assert row["outcome"] == "Tides are read; tests pass"
    assert row["still_open"] == "Not pushed"


def test_a_project_counts_what_is_active_and_what_faded():
    known = memory("m1")["project_id"]
    sessions = session_rows(turns(turn(1, project_id=known, said_at=at("2026-09-01"))), memories())
    facts = ProjectFacts(known, "reef", "reef", "path:/reef", ("/reef",), 2, 5, False)
    [row] = project_rows(
        [facts], {known: {"active": 1, "archived": 1}, "other": {"active": 1}}, sessions
    ).to_pylist()
    assert (row["active"], row["faded"], row["sessions"]) == (1, 1, 1)
    assert (row["edges"], row["passages"], row["last_worked_at"]) == (2, 5, at("2026-09-01"))
