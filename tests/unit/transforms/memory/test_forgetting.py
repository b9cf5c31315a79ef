"""Forgetting on rows: what a pattern meets, what a sentence is, which turns go (spec 12)."""

import json
import re
from datetime import timedelta

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from cortex.transforms.memory.forgetting import (
    FORGOTTEN,
    Phrases,
    Tombstones,
    erased_journal,
    erased_turns,
    pending,
    requested_memories,
    tombstones_of,
    without_sentences,
)
from cortex.transforms.memory.retention import ProjectRetention, Retention
from cortex.transforms.schemas import JOURNAL
from tests.examples import cases
from tests.rows import START, entry, turn, turns

NONE: frozenset[str] = frozenset()
FACT = "the harbour door is painted red"


def told(kind: str, memory_id: str | None = None, minute: int = 0, **payload: object) -> dict[str, object]:
    fact = {"memory_type": "gotcha", "category": "project"} if kind == "remember" else {}
    return entry(
        kind, "reef-1", fact | payload, recorded_at=START + timedelta(minutes=minute), memory_id=memory_id
    )


@cases(
    "said",
    [
        "The harbour door is painted red.",
        "the  harbour\ndoor is painted red",
        "the **harbour door** is painted red",
        r'{"note": "the harbour\ndoor is painted red"}',
    ],
)
def test_a_fact_is_found_whatever_its_case_space_and_emphasis(said):
    [pattern, nothing] = Phrases.of([FACT, "something else altogether"]).patterns_in([said, "another text"])
    assert pattern is not None and re.search(pattern, said)
    assert nothing is None


def test_short_texts_are_not_looked_for():
    assert not Phrases.of(["Run tests.", None, ""]).is_in("Run tests.")


def test_many_texts_are_looked_for_at_once():
    """An expression of all of them would pass the engine's limit (10 MB) at about 500 of 24 words."""
    texts = [" ".join(f"word{number}x{n}" for n in range(24)) for number in range(3_000)]
    sought = Phrases.of(texts)
    assert sought.patterns_in(["nothing of it"]) == [None]
    [pattern] = sought.patterns_in([f"Yes. {texts[17].upper()}! {texts[2_001]}"])
    assert pattern is not None and len(re.findall(pattern, f"{texts[17]} {texts[2_001]} {texts[3]}")) == 2


def test_the_sentence_goes_and_its_neighbours_stay():
    text = f"We met. I say {FACT}, really! Then we left.\nNext line."
    assert without_sentences(text, FACT) == f"We met. {FORGOTTEN} Then we left.\nNext line."


@given(st.lists(st.sampled_from(["Ay.", "Be so.", f"See {FACT} now.", "Dee\n", "Eh?"]), max_size=8))
def test_after_it_no_match_is_left_and_all_else_is(parts):
    text = " ".join(parts)
    made = without_sentences(text, FACT)
    assert FACT not in made
    for part in ("Ay.", "Be so.", "Eh?"):
        assert made.count(part) == text.count(part)


def erase(rows, *, named=NONE, shared=NONE, sought=None, gone=None):
    table = turns(*rows)
    nothing = pl.Series([False] * len(rows))
    made, changed = erased_turns(table, nothing if gone is None else gone, named, shared, sought or Phrases())
    return [(row["text"], row["tool_input"]) for row in made.to_pylist()], changed


def test_a_named_turn_loses_its_words_and_its_input():
    rows = [turn(1, "x", turn_id="a", tool_input='{"k": "v"}'), turn(2, "y", turn_id="b")]
    assert erase(rows, named=frozenset("a")) == ([(FORGOTTEN, None), ("y", None)], {"a"})


def test_a_shared_turn_keeps_what_does_not_match():
    rows = [turn(1, f"Yes. {FACT}. No.", turn_id="a")]
    made, _ = erase(rows, named=frozenset("a"), shared=frozenset("a"), sought=Phrases.of([FACT]))
    assert made == [(f"Yes. {FORGOTTEN} No.", None)]


def test_a_shared_turn_where_nothing_matches_goes_whole():
    rows = [turn(1, "It is said otherwise here.", turn_id="a")]
    made, _ = erase(rows, named=frozenset("a"), shared=frozenset("a"), sought=Phrases.of([FACT]))
    assert made == [(FORGOTTEN, None)]


def test_a_calls_input_stays_json():
    rows = [turn(1, "x", turn_id="a", tool_input=json.dumps({"note": f"that {FACT}!", "n": 1}))]
    [(_, given_input)], _ = erase(rows, sought=Phrases.of([FACT]))
    assert json.loads(given_input) == {"note": f"that {FORGOTTEN}!", "n": 1}


def test_erasing_twice_equals_once():
    rows = [turn(1, f"Yes. {FACT}. No.", turn_id="a"), turn(2, "y", turn_id="b")]
    table, nothing = turns(*rows), pl.Series([False, False])
    once, _ = erased_turns(table, nothing, frozenset("b"), NONE, Phrases.of([FACT]))
    twice, changed = erased_turns(once, nothing, frozenset("b"), NONE, Phrases.of([FACT]))
    assert (twice, changed) == (once, set())


def test_tombstones_cover_sessions_projects_until_and_what_is_too_old():
    rows = turns(
        turn(1, session_id="s1"),
        turn(2, session_id="s2"),
        turn(3, session_id="s2", project_id="kelp-1"),
        turn(9, session_id="s2", project_id="kelp-1"),
        turn(9, session_id="s3", said_at=None),
    )
    until = START + timedelta(minutes=5)
    of = lambda **chosen: Tombstones(**chosen).covers(rows).to_list()  # noqa: E731
    assert of(session_ids=frozenset({"s1"})) == [True, False, False, False, False]
    assert of(projects={"kelp-1": until}) == [False, False, True, False, False]
    since = ProjectRetention(START + timedelta(minutes=3))
    assert of(retention=Retention(since)) == [True, True, False, False, True]
    assert of(retention=Retention(by_project={"kelp-1": since})) == [False] * 5
    own = Retention(since, {"kelp-1": ProjectRetention(until + timedelta(minutes=5))})
    assert of(retention=own) == [True, True, True, True, True]
    assert of() == [False] * 5


def test_what_is_forgotten_is_not_admitted_again():
    rows = turns(turn(1, turn_id="a"), turn(2, turn_id="b"))
    journal = JOURNAL.of([told("forget", "m1", turn_ids=["a"])])
    assert tombstones_of(journal).admitted(rows)["turn_id"].to_pylist() == ["b"]


def test_a_wish_waits_until_it_is_noted_as_done():
    wish = told("forget", "m1")
    assert pending(JOURNAL.of([wish])) == [wish]
    assert pending(JOURNAL.of([wish, told("forget", "m1", of=wish["entry_id"])])) == []


def test_a_merged_memory_dooms_its_members_and_theirs():
    journal = JOURNAL.of(
        [
            told("merge", "mm", members=["m1", "m2"], text="t"),
            told("merge", "mmm", members=["mm", "m3"], text="t"),
        ]
    )
    assert set(requested_memories([told("forget", "mmm")], journal)) == {"mmm", "mm", "m1", "m2", "m3"}


def test_the_journal_loses_what_was_told_before_the_wish_and_not_after():
    wish = told("forget", "m1", minute=5)
    rows = [
        told("remember", "m1", text="before"),
        told("edit", "m1", minute=1, text="edited"),
        told("merge", "mm", minute=2, members=["m1", "m2"], text="merged"),
        told("remember", "m2", minute=3, text=f"Well. {FACT}."),
        wish,
        told("remember", "m1", minute=6, text="after"),
    ]
    made = erased_journal(JOURNAL.of(rows), {"m1": wish}, {}, Phrases.of([FACT]))
    said = [json.loads(row["payload"]).get("text") for row in made.to_pylist()]
    assert said == [f"Well. {FORGOTTEN}", None, "after"]
