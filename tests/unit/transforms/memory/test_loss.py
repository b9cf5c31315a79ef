"""What is lost, what takes its place, and how much of it stops a run (law 8)."""

from hypothesis import given
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.loss import (
    Loss,
    lost_ids,
    replaced,
    shown_lines_of,
    too_many_lines,
    too_many_memories,
)
from cortex.transforms.schemas import MEMORIES
from tests.rows import START, memories, memory

POLICY = read_policy(None)


def said_in(turn_id):
    return {
        "turn_id": turn_id, "session_id": "s1", "file": "/t/s1.jsonl", "lines": [1], "layer": "layer3:tag",
        "said_at": START, "git_branch": None,
    }  # fmt: skip


def test_archived_is_found_and_pruned_or_superseded_is_lost():
    live = memories(*[memory(name) for name in "abcd"])
    made = memories(
        memory("a", status="archived"), memory("b", status="pruned"), memory("c", status="superseded")
    )
    assert lost_ids(live, made) == ["b", "c", "d"]


def test_what_was_not_shown_cannot_be_lost():
    live = memories(memory("a", status="pruned"), memory("b", status="archived", merged_into="m"))
    assert lost_ids(live, MEMORIES.empty()) == []


def test_a_merged_memory_is_lost_only_with_what_took_it_up():
    live = memories(memory("a"), memory("b"))
    merged = [memory(name, status="archived", merged_into="m") for name in "ab"]
    assert lost_ids(live, memories(*merged, memory("m"))) == []
    assert lost_ids(live, memories(*merged)) == ["a", "b"]


def test_a_new_memory_of_the_same_turn_and_type_takes_the_place_of_one():
    live = memories(*[memory(name, evidence=[said_in("t1")]) for name in "ab"])
    made = memories(
        memory("n", evidence=[said_in("t1")]),
        memory("o", evidence=[said_in("t2")]),
        memory("p", evidence=[said_in("t1")], memory_type="gotcha"),
    )
    assert replaced(live.to_pylist(), live, made) == {"a"}


def test_a_tenth_of_a_scope_or_of_the_store_stops_a_run_and_two_memories_never_do():
    def stopped(*losses):
        found = too_many_memories([Loss(f"p{n}", *loss) for n, loss in enumerate(losses)], POLICY)
        return [loss.scope for loss in found]

    assert stopped((10, 100), (0, 100)) == []
    assert stopped((11, 100), (0, 1_000)) == ["p0"]
    assert stopped((2, 2)) == []
    assert stopped((3, 3)) == ["p0"]
    assert stopped((2, 4), (2, 4), (0, 20)) == ["p0", "p1"]
    assert stopped((2, 4), (2, 4), (0, 40)) == []


def test_half_of_a_brief_stops_a_run():
    assert too_many_lines([Loss("p", 6, 12)], POLICY) == []
    assert too_many_lines([Loss("p", 7, 12)], POLICY) == [Loss("p", 7, 12)]
    assert shown_lines_of("# Notes\n\n## Gotchas\n- one\n- two\n") == 2


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_what_stops_a_run_is_more_than_a_tenth(pairs):
    losses = [Loss(f"p{n}", min(pair), max(pair)) for n, pair in enumerate(pairs)]
    for loss in too_many_memories(losses, POLICY):
        lost, known = sum(one.lost for one in losses), sum(one.shown for one in losses)
        assert loss.lost * 10 > loss.shown or lost * 10 > known
