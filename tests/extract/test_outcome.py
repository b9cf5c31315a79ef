"""The outcome record: what a session came to, for the one who comes back."""

from cortex.transforms.extract.outcome import outcome_parts
from tests.extract.conftest import Shown
from tests.extract.sessions import Said, call, prompt, text


def record(shown: Shown, *turns: Said | list[Said]) -> dict[str, str]:
    """Return the parts of the one outcome record of a session; none where it has no record."""
    records = [row for row in shown(*turns) if row["memory_type"] == "outcome"]
    assert len(records) <= 1
    return outcome_parts(records[0]["text"]) if records else {}


COMMIT = call("Bash", "git commit -m 'Store tides as text'", "[main 1a2b3c4] Store tides as text\n 1 file")


def test_a_session_leaves_one_record_of_goal_outcome_and_what_is_open(shown: Shown) -> None:
    turns = (
        prompt("Can you please add a tide table to the harbour page?"),
        call("Edit", "harbour.py"),
        call("Bash", "pytest -q", "12 passed"),
        COMMIT,
        text("I've successfully added the tide table below the map. Want me to translate its headings?"),
    )
    assert record(shown, *turns) == {
        "goal": "Add a tide table to the harbour page",
        "outcome": "Committed: Store tides as text (1a2b3c4); `pytest -q` passes; "
        "Added the tide table below the map",
        "open": "not pushed; offered, unanswered: translate its headings",
    }


def test_a_session_that_changed_nothing_leaves_no_record(shown: Shown) -> None:
    answer = text("The harbour page shows the tides of the next three days.")
    assert record(shown, prompt("Can you please look at the harbour page?"), answer) == {}


def test_a_grown_session_has_the_record_of_its_new_end(events: Shown) -> None:
    turns = [
        prompt("Please add a tide table."),
        call("Edit", "harbour.py"),
        text("Added the tide table below the map."),
    ]
    more = [
        *turns,
        prompt("Please move the table above the map."),
        text("Moved the tide table above the map."),
    ]
    before, after = (
        [row for row in events(*given) if row["memory_type"] == "outcome"] for given in (turns, more)
    )
    assert before[0]["subject"] == after[0]["subject"]
    assert [row["text"] for row in after] == [
        "Goal: Move the table above the map. Outcome: Moved the tide table above the map."
    ]
