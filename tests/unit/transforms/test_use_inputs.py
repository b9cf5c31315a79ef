"""Uses counted again only where something changed are those counted from the start."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as some

from cortex.storage.settings.reference import read_policy
from cortex.transforms.schemas import USES
from cortex.transforms.views.metrics import NAMES, SHOWINGS, session_uses, still_counted, use_inputs
from tests.examples import examples
from tests.rows import turn, turns

POLICY = read_policy(None)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SESSIONS, MEMORIES, WORDS = ("s1", "s2"), ("0123456789", "ab23456789"), ("tide_table", "poll.py")

minutes = some.integers(0, 3).map(lambda minute: BEGIN + timedelta(minutes=minute))
showings = some.dictionaries(
    some.tuples(some.sampled_from(SESSIONS), some.sampled_from(MEMORIES)), minutes, max_size=4
)
names = some.sets(some.tuples(some.sampled_from(MEMORIES), some.sampled_from(WORDS)))
turn_rows = some.lists(
    some.tuples(
        some.sampled_from(SESSIONS),
        some.sampled_from(("prompt", "tool_call", "text")),
        minutes,
        some.sampled_from((*WORDS, MEMORIES[0], "That is wrong in poll.py")),
    ),
    max_size=5,
)


def world(showings, names, rows, version):
    counts = {"briefs": 1, "prompts": 0, "recalls": 0}
    shown = [
        {"session_id": session, "memory_id": memory, "shown_at": at, **counts}
        for (session, memory), at in sorted(showings.items())
    ]
    columns = ("session_id", "kind", "said_at", "text")
    # A turn's id follows from its place and words, as a reader gives it.
    spoken = [
        turn(at, **dict(zip(columns, row, strict=True)), turn_id=f"{at} {row}") for at, row in enumerate(rows)
    ]
    return (
        pa.Table.from_pylist(shown, schema=SHOWINGS),
        pa.Table.from_pylist([{"memory_id": m, "name": n} for m, n in sorted(names)], schema=NAMES),
        turns(*spoken),
        version,
    )


worlds = some.builds(world, showings, names, turn_rows, some.sampled_from("12"))


def count(world, known):
    shown, names, rows, version = world
    inputs = use_inputs(shown, names, rows, POLICY, version)
    kept = still_counted(known, inputs)
    fresh = inputs.keys() - set(kept["session_id"].to_pylist())
    is_fresh = [session in fresh for session in shown["session_id"].to_pylist()]
    counted = shown.filter(pa.array(is_fresh, pa.bool_()))
    rows = pa.concat_tables([kept, session_uses(counted, names, rows, POLICY, "kelp-1", inputs)])
    return rows.sort_by([("session_id", "ascending"), ("memory_id", "ascending")])


@settings(deadline=None, max_examples=examples(30))
@given(worlds, worlds)
def test_uses_counted_again_in_part_are_those_counted_from_the_start(before, after):
    assert count(after, count(before, USES.empty())).equals(count(after, USES.empty()))


@settings(deadline=None, max_examples=examples(30))
@given(showings, names, names, turn_rows)
def test_they_are_also_where_memories_alone_were_reworded(shown, names_before, names_after, rows):
    before, after = (world(shown, names, rows, "1") for names in (names_before, names_after))
    assert count(after, count(before, USES.empty())).equals(count(after, USES.empty()))


@settings(deadline=None, max_examples=examples(30))
@given(worlds)
def test_a_session_of_which_nothing_changed_is_not_counted_again(before):
    shown, names, rows, version = before
    uses = count(before, USES.empty())
    assert still_counted(uses, use_inputs(shown, names, rows, POLICY, version)).equals(uses)
