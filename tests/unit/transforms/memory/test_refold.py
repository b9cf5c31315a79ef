"""Claims about the fold in part: only what is new is folded, and it gives what a fold of all gives."""

from datetime import timedelta

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.memory.refold import refold
from cortex.transforms.schemas import JOURNAL, MEMORIES
from tests.examples import examples
from tests.rows import START, entry, event, events

POLICY = read_policy(None)
FACTS = ("Use SQLite", "use sqlite.", "Chose Redis over Memcached for the cache", "Ship 1.0", "Run pytest -q")
TYPES = ("decision", "gotcha", "progress")
IDS = [memory_id("reef-1", kind, fact) for kind in TYPES for fact in FACTS]
MERGED = ["merged-1", "merged-2"]

names = st.sampled_from([*IDS, *MERGED])
statements = st.tuples(
    st.integers(0, 5),  # session
    st.sampled_from(FACTS),
    st.sampled_from(TYPES),
    st.sampled_from(["", "", "plan-1", "plan-2"]),
    st.integers(0, 9),
    st.sampled_from([0.3, 0.7, 0.9]),
)


def _fact(name: str) -> dict[str, object]:
    at = IDS.index(name) if name in IDS else 0
    return {"text": FACTS[at % len(FACTS)], "memory_type": TYPES[at // len(FACTS)], "category": "project"}


noted = st.one_of(
    st.tuples(st.sampled_from(["pin", "unpin", "confirm", "archive", "restore", "forget", "unmerge"]), names),
    st.tuples(st.just("edit"), names, st.fixed_dictionaries({"text": st.sampled_from(FACTS)})),
    st.tuples(st.just("supersede"), names, st.fixed_dictionaries({"by": names})),
    st.tuples(
        st.just("recall"), st.none(), st.fixed_dictionaries({"memory_ids": st.lists(names, max_size=3)})
    ),
    st.tuples(
        st.just("merge"),
        st.sampled_from(MERGED),
        st.fixed_dictionaries({"members": st.lists(names, max_size=3), "text": st.sampled_from(FACTS)}),
    ),
    st.sampled_from(IDS).map(lambda name: ("remember", name, _fact(name))),
    st.sampled_from(IDS).map(
        lambda name: (
            "prune",
            name,
            {
                "memory_type": "decision",
                "source_type": "conversation",
                "trust": "assistant",
                "created_at": START.isoformat(),
                "updated_at": (START + timedelta(days=4)).isoformat(),
            },
        )
    ),
)


def _event(session: int, text: str, memory_type: str, subject: str, day: int, confidence: float) -> dict:
    return event(
        text,
        session_id=f"s{session}",
        turn_id=f"t-{session}-{day}-{text}",
        memory_type=memory_type,
        subject=subject if memory_type == "progress" else "",
        step_status="pending" if subject and day % 2 else None,
        said_at=START + timedelta(days=day),
        confidence=confidence,
    )


def _entry(number: int, day: int, kind: str, name: str | None, payload: dict | None = None) -> dict:
    at = START + timedelta(days=day, seconds=number)
    return entry(kind, "reef-1", payload or {}, recorded_at=at, memory_id=name)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(statements, max_size=12),
    st.lists(statements, max_size=4),
    st.sets(st.integers(0, 5), max_size=1),
    st.lists(st.tuples(st.integers(0, 9), noted, st.booleans()), max_size=8),
    st.randoms(use_true_random=False),
)
def test_a_fold_in_part_is_the_fold_from_the_start(before, after, lost, entries, chance):
    """Sessions go on, are gone (`lost`) or come again, and entries come in later than they were recorded."""
    old = {row["event_id"]: row for row in (_event(*each) for each in before)}
    new = {row["event_id"]: row for row in (_event(*each) for each in after)}
    grown = {row["session_id"] for row in new.values()}
    kept = [row for row in old.values() if row["session_id"] not in {f"s{number}" for number in lost}]
    now = list({**{row["event_id"]: row for row in kept}, **new}.values())
    chance.shuffle(now)
    rows = [(_entry(at, day, *each), is_new) for at, (day, each, is_new) in enumerate(entries)]
    late = [row for row, is_new in rows if is_new]
    journal = [row for row, _ in rows]
    chance.shuffle(journal)
    folded = fold(events(*old.values()), JOURNAL.of([row for row, is_new in rows if not is_new]), POLICY)
    whole = fold(events(*now), JOURNAL.of(journal), POLICY)
    parts = refold(folded, grown, JOURNAL.of(late), events(*now), JOURNAL.of(journal), POLICY)
    if parts is not None:
        assert pa.concat_tables(parts).sort_by("memory_id").to_pylist() == whole.to_pylist()


def test_of_many_memories_one_that_is_new_is_folded():
    old = [event(f"Keep shelf {n} dry", session_id=f"s{n}", turn_id=f"t{n}") for n in range(50)]
    new = event("Chose Redis over Memcached for the cache", session_id="s99", turn_id="t99")
    before = fold(events(*old), JOURNAL.empty(), POLICY)
    parts = refold(before, {"s99"}, JOURNAL.empty(), events(*old, new), JOURNAL.empty(), POLICY)
    assert [part.num_rows for part in parts] == [50, 1]


def test_where_the_assistant_alone_was_once_believed_all_is_folded():
    prose = event("Use SQLite", layer="layer2:en")
    assert refold(MEMORIES.empty(), {"s1"}, JOURNAL.empty(), events(prose), JOURNAL.empty(), POLICY) is None
