"""What counts at an earlier instant: by when it was said, and forgetting reaches back (spec 8.5)."""

from datetime import timedelta

import pytest

from cortex.flows.past.as_of import journal_until, rows_until
from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.schemas import JOURNAL
from tests.rows import START, entry, event, events, turn, turns

POLICY = read_policy(None)
DAY = timedelta(days=1)
TOLD = {"text": "Use SQLite", "memory_type": "decision", "category": "project"}


def known(until, *entries, said=()):
    journal = journal_until(JOURNAL.of(list(entries)), until)
    return fold(rows_until(events(*said), until), journal, POLICY).to_pylist()


def test_what_is_said_counts_from_the_instant_after_it():
    rows = turns(turn(1, said_at=START), turn(2, said_at=START + DAY), turn(3, said_at=None))
    assert rows_until(rows, START + DAY)["line"].to_pylist() == [1, 3]


def test_a_word_of_a_person_counts_from_when_it_was_recorded():
    told = entry("remember", "reef-1", TOLD, recorded_at=START, memory_id="m")
    assert known(START, told) == []
    assert [row["text"] for row in known(START + DAY, told)] == ["Use SQLite"]


def test_what_was_imported_later_counts_from_the_day_its_tool_noted_it():
    payload = TOLD | {"created_at": START.isoformat()}
    told = entry("import", "reef-1", payload, recorded_at=START + 30 * DAY, memory_id="m")
    assert known(START - DAY, told) == []
    [row] = known(START + DAY, told)
    assert (row["created_at"], row["updated_at"]) == (START, START)


@pytest.mark.parametrize("days_later", [1, 400])
def test_a_later_wish_to_forget_reaches_back(days_later):
    said = [event("Use SQLite")]
    name = memory_id("reef-1", "decision", "Use SQLite")
    wish = entry("forget", "reef-1", {}, recorded_at=START + days_later * DAY, memory_id=name)
    assert known(START + DAY, said=said)
    assert known(START + DAY, wish, said=said) == []


def test_a_later_supersession_recall_pin_and_pruning_have_not_happened():
    said = [event("Use SQLite")]
    name = memory_id("reef-1", "decision", "Use SQLite")
    later = [
        entry(kind, "reef-1", payload, recorded_at=START + 9 * DAY, memory_id=name)
        for kind, payload in (("supersede", {"by": "x"}), ("recall", {"memory_ids": [name]}), ("pin", {}))
    ]
    tomb = {"memory_type": "decision", "source_type": "conversation", "trust": "user"}
    tomb |= {column: START.isoformat() for column in ("created_at", "updated_at")}
    later.append(entry("forget", "reef-1", {"pruned": tomb}, recorded_at=START + 9 * DAY, memory_id=name))
    assert known(START + DAY, *later, said=said) == known(START + DAY, said=said)
