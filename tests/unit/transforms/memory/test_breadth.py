"""The neighbourhood of a memory: nearest first, each once, in either direction."""

import pyarrow as pa

from cortex.flows.operations.ask.memory_details import linked_to

COLUMNS = ("source_id", "target_id", "edge_type", "strength")


def edges(*rows: tuple[str, str, str, float]) -> pa.Table:
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)})


CHAIN = edges(
    ("a", "b", "refines", 0.4), ("c", "a", "exemplifies", 0.9), ("b", "d", "relates_to", 0.5),
    ("c", "b", "relates_to", 0.2), ("d", "e", "relates_to", 0.5),
)  # fmt: skip


def test_the_strongest_of_the_nearest_comes_first_and_each_once() -> None:
    reached = linked_to(CHAIN, "a", steps=2)
    assert [(each.memory_id, each.distance, each.via_id) for each in reached] == [
        ("c", 1, "a"), ("b", 1, "a"), ("d", 2, "b"),
    ]  # fmt: skip
    assert [each.is_source for each in reached] == [True, False, False]


def test_of_two_links_to_one_memory_the_stronger_counts() -> None:
    twice = edges(("a", "b", "relates_to", 0.1), ("b", "a", "refines", 0.8))
    (linked,) = linked_to(twice, "a", steps=3)
    assert (linked.edge_type, linked.is_source) == ("refines", True)


def test_a_memory_without_links_has_no_neighbourhood() -> None:
    assert linked_to(CHAIN, "z", steps=3) == []
