"""What a person did goes over to a memory's successor: which that is, and what happens without one."""

from datetime import timedelta

import pyarrow as pa
import pytest

from cortex.flows.past.rederive import Folds, reattach_edits, without_changes
from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import by_memory, fold
from cortex.transforms.memory.forgetting import requested_memories
from cortex.transforms.schemas import JOURNAL
from tests import rows as make

POLICY = read_policy(None)
OLD = "We keep the tide records in SQLite"
NEW = "Tide records: SQLite, one writer"


def event(text, turn_id="t1", **chosen):
    return make.event(text, turn_id=turn_id, **chosen)


def named(row):
    [name] = by_memory(make.events(row), POLICY)
    return name


def done(kind, row, minutes=0, **payload):
    at = make.START + timedelta(days=1, minutes=minutes)
    return make.entry(kind, "reef-1", payload, recorded_at=at, memory_id=named(row))


def promoted(before, after, *entries):
    """Return what is carried over, and the memories after it, by id."""
    journal = JOURNAL.of(list(entries))
    old, new = make.events(*before), make.events(*after)
    folds = Folds(
        fold(old, journal, POLICY), fold(old, without_changes(journal), POLICY), fold(new, journal, POLICY)
    )
    over = reattach_edits(folds, journal, POLICY)
    memories = fold(new, pa.concat_tables([journal, over.rows]), POLICY).to_pylist()
    return over, {row["memory_id"]: row for row in memories}


def test_the_nearest_in_words_follows():
    near, far = event(NEW), event("Tide records go to SQLite after the nightly check of the gauges")
    old = event(OLD)
    over, memories = promoted([old], [far, near], done("pin", old))
    assert over.successors == {named(old): named(near)}
    assert memories[named(near)]["is_pinned"] and not memories[named(far)]["is_pinned"]


def test_of_two_as_near_the_type_decides_and_then_the_id():
    old, other = event(OLD), event(f"{OLD}!", memory_type="gotcha")
    same = event(f"{OLD} here", memory_type="decision")
    over, _ = promoted([old], [event(f"{OLD} here", memory_type="context"), same], done("pin", old))
    assert over.successors == {named(old): named(same)}
    first, second = event(f"{OLD} there"), event(f"{OLD} where", memory_type="context")
    over, _ = promoted([other], [first, second], done("pin", other))
    assert over.successors == {named(other): min(named(first), named(second))}


@pytest.mark.parametrize(
    "other",
    [event(NEW, turn_id="t2"), event("Gauges are read each hour from the pier"), event("SQLite it is")],
    ids=["another turn", "other words", "one word in common"],
)
def test_another_fact_does_not_follow_and_the_pinned_one_stays_as_it_was(other):
    old = event(OLD)
    pin = done("pin", old)
    over, memories = promoted([old], [other], pin)
    assert (over.successors, over.carried, over.kept, over.lapsed) == ({}, 0, (named(old),), ())
    assert memories[named(old)] == fold(make.events(old), JOURNAL.of([pin]), POLICY).to_pylist()[0]


def test_a_memory_that_was_there_before_follows_nothing():
    old, beside = event(OLD), event(NEW)
    over, memories = promoted([old, beside], [beside], done("edit", old, text="SQLite, by Ana's word"))
    assert over.successors == {} and memories[named(beside)]["text"] == NEW
    assert memories[named(old)]["text"] == "SQLite, by Ana's word"


def test_two_edits_do_not_meet_in_one_memory():
    first, second, new = event(OLD), event("The tide records live in SQLite"), event(f"{OLD} files")
    edits = [done("edit", first, text="One"), done("edit", second, text="Two")]
    over, memories = promoted([first, second], [new], *edits)
    assert over.successors == {named(first): named(new)} and over.kept == (named(second),)
    assert sorted(row["text"] for row in memories.values()) == ["One", "Two"]


def test_the_last_word_of_a_person_counts_for_the_successor():
    old, new = event(OLD), event(NEW)
    over, memories = promoted(
        [old], [new], done("pin", old), done("edit", old, 1, text="A"), done("edit", old, 2, text="B"),
        done("unpin", old, 3),
    )  # fmt: skip
    assert over.carried == 4
    assert (memories[named(new)]["text"], memories[named(new)]["is_pinned"]) == ("B", False)


def test_what_another_memory_replaced_stays_replaced_by_its_successor():
    old, new = event(OLD), event(NEW)
    better, worded = (
        event("Harvest levels are whole millimetres", "t2"),
        event("Levels: whole millimetres", "t2"),
    )
    over, memories = promoted([old, better], [new, worded], done("supersede", old, by=named(better)))
    assert (memories[named(new)]["status"], memories[named(new)]["superseded_by"]) == (
        "superseded",
        named(worded),
    )
    over, memories = promoted([old, better], [old, worded], done("supersede", old, by=named(better)))
    assert memories[named(old)]["superseded_by"] == named(worded)
    over, memories = promoted([old, better], [old], done("supersede", old, by=named(better)))
    assert over.kept == (named(better),) and memories[named(better)]["status"] == "active"


def test_a_change_of_what_nothing_follows_is_named():
    old = event(OLD)
    archived = done("archive", old)
    over, memories = promoted([old], [], archived)
    assert [row["entry_id"] for row in over.lapsed] == [archived["entry_id"]] and memories == {}


def test_what_a_review_left_alone_is_left_alone_under_its_new_name():
    old, new, other = event(OLD), event(NEW), event("Levels are whole millimetres", "t2")
    dismissal = make.entry(
        "dismiss", "reef-1", {"item": "contradiction", "memory_ids": [named(old), named(other)]},
        recorded_at=make.START + timedelta(days=1),
    )  # fmt: skip
    over, _ = promoted([old, other], [new, other], dismissal)
    [row] = over.rows.to_pylist()
    assert named(new) in row["payload"] and named(other) in row["payload"] and row["actor"] == "rederive"


def test_in_scripts_without_spaces_the_signs_in_common_count():
    old, new = event("潮位の記録はSQLiteに保存する"), event("決定:潮位の記録はSQLiteに置く")
    over, _ = promoted([old], [new], done("pin", old))
    assert over.successors == {named(old): named(new)}


def test_carried_over_before_it_is_not_carried_over_again():
    old, new = event(OLD), event(NEW)
    pin = done("pin", old)
    over, _ = promoted([old], [new], pin)
    again, _ = promoted([new], [new], pin, *over.rows.to_pylist())
    assert (again.rows.num_rows, again.carried, again.lapsed) == (0, 0, ())


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("edit", {"text": "SQLite"}), ("archive", {"reason": "tide.py is gone"})],
    ids=["edit", "archive"],
)
def test_forgetting_the_successor_takes_the_words_under_the_old_name(kind, payload):
    old, new = event(OLD), event(NEW)
    first = done(kind, old, **payload)
    over, _ = promoted([old], [new], first)
    journal = JOURNAL.of([first, *over.rows.to_pylist()])
    assert set(requested_memories([done("forget", new, 9)], journal)) == {named(old), named(new)}


def test_what_a_batch_says_of_two_memories_makes_them_not_one():
    old, new, other = event(OLD), event(NEW), event("Levels are whole millimetres", "t2")
    both = [done("archive", row, reason="tide.py is gone") for row in (old, other)]
    over, _ = promoted([old, other], [new, other], *both)
    requested = requested_memories([done("forget", new, 9)], JOURNAL.of([*both, *over.rows.to_pylist()]))
    assert set(requested) == {named(new)}
