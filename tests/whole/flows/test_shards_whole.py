"""Shards: whoever reads and extracts from them, what a run commits is the same."""

from cortex.flows.reading.shards import (
    TextShard,
    answer_shard,
    packed,
    unpacked,
)
from tests.bench import contents, difference
from tests.store.flows.test_shards import (
    Workers,
    take_in,
    talked,  # noqa: F401
)


def test_shards_of_workers_give_what_one_process_gives(talked, other):
    take_in(talked, Workers())
    take_in(other, None)
    assert difference(contents(talked.home), contents(other.home)) == {}


def test_vectors_are_the_same_to_the_last_bit_on_any_number_of_cores():
    from cortex.flows.embedders.local import load

    texts = [f"We keep reading {number} in {'UTC ' * (number % 9)}because of drift." for number in range(40)]
    whole = load().embed(texts)
    [worker] = unpacked(answer_shard(packed(TextShard(load().model, (tuple(texts),)))))  # type: ignore[misc]
    assert worker.tobytes() == whole.tobytes()
