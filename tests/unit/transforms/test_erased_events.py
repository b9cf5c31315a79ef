"""Events of forgotten words go; of the others not a byte changes."""

import pyarrow as pa

from cortex.transforms.memory.forgetting import Phrases, erased_events
from cortex.transforms.schemas import EVENTS
from tests.rows import event

FACT = "The gauges report every six minutes."


def events(*rows: dict[str, object]) -> pa.Table:
    return EVENTS.of(sorted(rows, key=lambda row: str(row["event_id"])))


def test_rows_of_other_words_stay_as_they_are():
    rows = events(event(event_id="a", turn_id="t1"), event(event_id="b", turn_id="t2"))
    assert erased_events(rows, {"t1", "t2"}, set(), Phrases.of([FACT])).equals(rows)


def test_doomed_rows_and_rows_of_turns_that_are_gone_go():
    rows = events(*(event(event_id=name, turn_id=f"t-{name}") for name in "abc"))
    left = erased_events(rows, {"t-a", "t-b"}, {"b"}, Phrases())
    assert left["event_id"].to_pylist() == ["a"]


def test_a_row_that_holds_the_words_among_others_loses_that_sentence():
    text = f"{FACT} The buoys are painted each spring."
    [row] = erased_events(
        events(event(event_id="a", turn_id="t1", text=text)), {"t1"}, set(), Phrases.of([FACT])
    ).to_pylist()
    assert row["text"] == "The buoys are painted each spring."
    assert row["event_id"] != "a"


def test_a_row_that_says_little_else_goes():
    rows = events(event(event_id="a", turn_id="t1", text=f"Yes. {FACT}"))
    assert erased_events(rows, {"t1"}, set(), Phrases.of([FACT])).num_rows == 0
