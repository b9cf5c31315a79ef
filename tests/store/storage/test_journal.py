"""Claims about the journal: written without the lease, taken in once, never lost in between."""

from pathlib import Path

import pytest

from cortex.storage.lake.journal import Journal
from cortex.storage.lake.lake import Lake
from cortex.transforms.errors import UnknownValue
from cortex.transforms.journal_entries import entry_in
from tests.rows import START, entry


def journal(home: Path) -> Journal:
    return Journal(home, Lake(home))


def pin(name: str = "m1") -> dict[str, object]:
    return entry("pin", "reef-1", {}, recorded_at=START, memory_id=name)


def test_an_entry_is_read_at_once_and_after_it_was_taken_in(home: Path):
    journal(home).write(pin())
    assert journal(home).read("reef-1")["memory_id"].to_pylist() == ["m1"]
    assert journal(home).take_in() == 1
    assert journal(home).waiting() == []
    assert journal(home).read("reef-1")["memory_id"].to_pylist() == ["m1"]


def test_an_entry_left_waiting_by_a_kill_after_the_commit_counts_once(home: Path):
    written = journal(home)
    written.write(pin())
    file = next((home / "staging" / "journal").iterdir())
    saved = file.read_bytes()
    written.take_in()
    file.write_bytes(saved)
    assert journal(home).read()["memory_id"].to_pylist() == ["m1"]
    assert journal(home).take_in() == 0
    assert journal(home).read()["memory_id"].to_pylist() == ["m1"]


def test_entries_written_at_once_are_one_file_and_each_taken_in(home: Path):
    journal(home).write(pin("m1"), pin("m2"))
    [file] = (home / "staging" / "journal").iterdir()
    assert sorted(journal(home).read("reef-1")["memory_id"].to_pylist()) == ["m1", "m2"]
    assert journal(home).take_in() == 2 and not file.exists()
    assert sorted(journal(home).read("reef-1")["memory_id"].to_pylist()) == ["m1", "m2"]


def test_of_entries_written_at_once_none_counts_if_one_is_damaged(home: Path):
    journal(home).write(pin("m1"), pin("m2"))
    [file] = (home / "staging" / "journal").iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    assert journal(home).waiting() == [] and journal(home).quarantine_damaged() == [file]


def test_the_same_entry_has_the_same_id_and_another_payload_another():
    assert pin()["entry_id"] == pin()["entry_id"] != pin("m2")["entry_id"]


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnknownValue, match="Allowed: remember"):
        entry("rename", "reef-1", {}, recorded_at=START)


def test_a_damaged_waiting_file_stops_nobody_and_is_set_aside(home: Path):
    journal(home).write(pin())
    damaged = home / "staging" / "journal" / "half.json"
    damaged.write_bytes(b'{"entry_id": "x"')
    assert journal(home).read()["memory_id"].to_pylist() == ["m1"]
    assert journal(home).quarantine_damaged() == [damaged]
    assert (home / "staging" / "set_aside" / "half.json").read_bytes() == b'{"entry_id": "x"'
    assert journal(home).take_in() == 1


@pytest.fixture
def written_while_read(monkeypatch: pytest.MonkeyPatch, home: Path) -> dict[str, object]:
    """Return the entry that somebody writes while a run reads the first one that waits."""
    late, read_entry = pin("late"), entry_in

    def read_slowly(content: bytes) -> dict[str, object]:
        journal(home).write(late)
        return read_entry(content)

    monkeypatch.setattr("cortex.storage.lake.journal.entry_in", read_slowly)
    return late


def test_an_entry_written_while_a_run_looks_for_damaged_ones_is_not_taken_for_one(
    home: Path, written_while_read: dict[str, object]
):
    journal(home).write(pin())
    assert journal(home).quarantine_damaged() == []
    assert written_while_read in journal(home).waiting()


def test_an_entry_written_while_a_run_takes_others_in_waits_for_the_next_run(
    home: Path, written_while_read: dict[str, object]
):
    journal(home).write(pin())
    run = journal(home)
    run.take_in()
    assert run.read()["memory_id"].to_pylist() == ["m1"]
    assert {*journal(home).read()["memory_id"].to_pylist()} == {"m1", "late"}
    assert run.take_in() == 1
    assert {*run.read()["memory_id"].to_pylist()} == {"m1", "late"}


def test_damaged_files_are_found_by_a_journal_that_counts_no_waiting_entry(home: Path):
    journal(home).write(pin())
    assert Journal(home, Lake(home), counts_waiting=False).quarantine_damaged() == []
