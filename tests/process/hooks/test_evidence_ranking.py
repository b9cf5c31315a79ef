"""Fused scores order candidates as they should, neighbours lend in dialogue, duplicates fold."""

import math
from copy import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.hooks.evidence.question import SearchSettings
from cortex.hooks.evidence.ranking import (
    DECIDED,
    OVERTAKEN,
    PROPOSED,
    STATED,
    Group,
    SearchCandidate,
    boost_sources,
    comparable,
    folded,
    fuse,
    lend,
    ranked,
    reciprocal_ranks,
    standardised,
)
from cortex.hooks.evidence.text import share_of_all, word_set
from cortex.storage.settings.reference import read_policy
from cortex.transforms.search import search_settings

LATER = 1_788_220_800_000_000
SETTINGS: SearchSettings = search_settings(read_policy(None))
NUMBERS = SETTINGS.numbers
scores = st.lists(st.integers(0, 50), min_size=2, max_size=20)


def best_of(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def changed(candidate: SearchCandidate, **values: Any) -> SearchCandidate:
    other = copy(candidate)
    for name, value in values.items():
        setattr(other, name, value)
    return other


def test_what_somebody_had_remembered_comes_before_talk_of_it_in_a_session_about_the_question() -> None:
    talk = [
        SearchCandidate(f"t{line}", "talk", frozenset({("s", line)}), lexical=9.0 - line, similarity=0.5)
        for line in range(1, 6)
    ]
    fact = SearchCandidate("f", "fact", is_memory=True, lexical=8.0, similarity=0.5, is_remembered=True)
    assert ranked([*talk, fact], NUMBERS)[0].id == "f"
    assert ranked([*talk, changed(fact, is_remembered=False)], NUMBERS)[0].id != "f"
    assert ranked([*talk, changed(fact, lexical=3.0, similarity=0.1)], NUMBERS)[0].id != "f"


def test_a_row_good_in_both_lists_is_first() -> None:
    assert best_of(fuse([9.0, 8.0, None], [0.1, 0.8, 0.7], NUMBERS)) == 1


def test_without_vectors_words_alone_decide() -> None:
    fused = fuse([1.0, 3.0, 2.0], [None] * 3, NUMBERS)
    assert fused[1] > fused[2] > fused[0]


def test_a_row_without_a_vector_counts_as_average_there() -> None:
    fused = fuse([5.0, 5.0, 5.0], [0.9, None, 0.1], NUMBERS)
    assert fused[0] > fused[1] > fused[2]


def test_nothing_found_is_no_score() -> None:
    assert fuse([], [], NUMBERS) == []


@given(scores)
def test_stretching_a_list_of_scores_changes_nothing(values: list[int]) -> None:
    similarity = [math.cos(value) for value in values]
    stretched = fuse([value * 4.0 for value in values], similarity, NUMBERS)
    assert fuse([float(value) for value in values], similarity, NUMBERS) == pytest.approx(stretched, abs=1e-6)


def test_standardised_scores_have_mean_0_and_deviation_1() -> None:
    assert standardised([1.0, 3.0, None]) == pytest.approx([-1.0, 1.0, 0.0])
    assert standardised([2.0, 2.0]) == [0.0, 0.0]


def test_equal_scores_share_the_better_rank() -> None:
    assert reciprocal_ranks([5.0, 7.0, 5.0, None], 60) == pytest.approx([1 / 62, 1 / 61, 1 / 62, 0.0])


def test_reciprocal_rank_fusion_is_a_matter_of_policy() -> None:
    by_rank = {**NUMBERS, "lexical_weight": 0, "vector_weight": 0, "rrf_weight": 1}
    # By score the first row wins by far; by rank the second, which stands second and first.
    assert best_of(fuse([90.0, 2.0, 1.0], [0.5, 0.6, 0.55], by_rank)) == 1


def test_the_same_hit_weighs_alike_in_a_small_and_a_large_table() -> None:
    # The idf of a word of one row: log(1 + (n - 1 + .5) / 1.5).
    small, large = (math.log(1 + (rows - 0.5) / 1.5) for rows in (20, 2_000))
    assert large / small > 2.5
    assert comparable(large, 2_000) / comparable(small, 20) == pytest.approx(1.0, abs=0.1)


def dialogue(
    *is_person: bool, lines: list[int] | None = None, files: list[str] | None = None
) -> list[SearchCandidate]:
    count = len(is_person)
    places = zip(files or ["s1"] * count, range(count), lines or range(1, count + 1), strict=True)
    return [
        SearchCandidate(f"p{at}", "", place=place, is_persons=person)
        for at, (place, person) in enumerate(zip(places, is_person, strict=True))
    ]


def test_a_turn_lends_to_the_turns_around_it() -> None:
    lent = lend([0.0, 2.0, 0.0, 0.0], dialogue(True, False, True, False), NUMBERS)
    assert lent == pytest.approx([0.6, 2.0, 0.6, 0.0])


def test_what_scores_below_average_takes_nothing_away() -> None:
    assert lend([1.0, -2.0], dialogue(True, False), NUMBERS) == [1.0, -2.0 + 0.3]


def test_the_assistant_alone_lends_nothing() -> None:
    assert lend([0.0, 2.0], dialogue(False, False), NUMBERS) == [0.0, 2.0]


def test_tool_calls_and_other_transcripts_part_a_dialogue() -> None:
    far = dialogue(True, False, lines=[1, 9])
    elsewhere = dialogue(True, False, files=["s1", "s2"])
    for rows in (far, elsewhere):
        assert lend([0.0, 2.0], rows, NUMBERS) == [0.0, 2.0]


def test_memories_stand_in_no_transcript() -> None:
    assert lend([0.0, 2.0], [fact(0, "tide", 1), fact(1, "reef", 2)], NUMBERS) == [0.0, 2.0]


@given(st.permutations(range(6)))
def test_lending_does_not_depend_on_the_order_of_rows(order: list[int]) -> None:
    rows, values = dialogue(True, False, True, False, False, True), [0.5, 2.0, -1.0, 0.0, 3.0, 1.0]
    lent = lend(values, rows, NUMBERS)
    moved = lend([values[at] for at in order], [rows[at] for at in order], NUMBERS)
    assert moved == pytest.approx([lent[at] for at in order])


def numbers_of(rows: list[SearchCandidate]) -> list[int]:
    return [int(row.id) for row in rows]


def rows_of(groups: list[Group]) -> list[list[int]]:
    return [numbers_of(group.rows) for group in groups]


def all_of(groups: list[Group]) -> list[list[int]]:
    return [numbers_of(group.all) for group in groups]


def passage(row: int, text: str, line: int) -> SearchCandidate:
    return SearchCandidate(str(row), text, frozenset({("s1", line)}), place=("s1", line, line))


def fact(row: int, text: str, *lines: int) -> SearchCandidate:
    return SearchCandidate(str(row), text, frozenset(("s1", line) for line in lines), is_memory=True)


def test_parts_of_one_turn_are_one_result() -> None:
    given_rows = [passage(0, "the tide turns", 4), passage(1, "gauges", 5), passage(2, "a reef grows", 4)]
    assert rows_of(folded(given_rows, SETTINGS, 10)) == [[0, 2], [1]]


def test_one_by_one_parts_of_a_turn_stay_apart_and_from_a_plan_that_sums_them_up() -> None:
    parts = [passage(0, "the tide turns", 4), passage(1, "a reef grows", 4)]
    plan = fact(2, "Plan: 1. measure", 4)
    plan.sums_up = True
    assert rows_of(folded([*parts, plan], SETTINGS, 10, by_part=True)) == [[0], [1], [2]]
    assert rows_of(folded([parts[0], fact(3, "Use UTC", 4)], SETTINGS, 10, by_part=True)) == [[3, 0]]
    again = passage(4, "the tide turns", 9)
    assert rows_of(folded([parts[0], again], SETTINGS, 10, by_part=True)) == [[0, 4]]


def test_a_memory_speaks_for_the_passages_it_rests_on() -> None:
    given_rows = [passage(0, "the tide turns", 4), fact(1, "Use UTC", 4, 9)]
    assert rows_of(folded(given_rows, SETTINGS, 10)) == [[1, 0]]


def test_two_facts_of_one_line_stay_two() -> None:
    given_rows = [fact(0, "Use UTC", 4), fact(1, "Keep one row a gauge", 4)]
    assert rows_of(folded(given_rows, SETTINGS, 10)) == [
        [0],
        [1],
    ]


def test_the_same_words_are_one_result() -> None:
    assert rows_of(
        folded([fact(0, "Use UTC for times.", 4), fact(1, "use UTC for times", 8)], SETTINGS, 10)
    ) == [[0, 1]]


def test_no_more_groups_than_asked_but_late_duplicates_still_join() -> None:
    given_rows = [
        passage(0, "tide", 1),
        passage(1, "reef", 2),
        passage(2, "gauge", 3),
        passage(3, "coral", 1),
    ]
    assert rows_of(folded(given_rows, SETTINGS, 2)) == [[0, 3], [1]]


def test_what_stands_near_the_best_row_of_a_session_is_shown_below_it() -> None:
    given_rows = [
        changed(passage(0, "tide tables in UTC", 10), score=4.0),
        changed(passage(1, "the gauges agree", 30), score=2.5),
        changed(passage(2, "paint the boat", 12), score=0.5),
        changed(passage(3, "coral at night", 90), score=0.4),
    ]
    groups = folded(given_rows, SETTINGS, 10, with_nearby=True)
    assert all_of(groups) == [[0, 1], [2], [3]]
    assert all_of(folded(given_rows, SETTINGS, 10)) == [[0], [1], [2], [3]]


def test_no_more_stands_below_a_result_than_can_be_read_at_a_glance() -> None:
    words = ("tide", "reef", "gauge", "coral", "boat", "pier")
    given_rows = [changed(passage(row, word, row + 1), score=5.0) for row, word in enumerate(words)]
    assert [len(group.nearby) for group in folded(given_rows, SETTINGS, 10, with_nearby=True)] == [3, 1]


def test_what_followed_a_question_of_the_assistant_speaks_for_it() -> None:
    asking = changed(passage(0, "tag the tide release now?", 10), score=5.0, is_asking=True)
    before = changed(passage(1, "the gauges agree", 4), score=4.0)
    answer = changed(passage(2, "the reef branch is protected", 20), score=3.0)
    also = changed(passage(3, "shall the pier wait?", 22), score=3.5, is_asking=True)
    [group] = folded([asking, before, also, answer], SETTINGS, 5, with_nearby=True)
    assert all_of([group]) == [[2, 0, 1, 3]]
    persons = changed(asking, is_persons=True)
    [group] = folded([persons, before, also, answer], SETTINGS, 5, with_nearby=True)
    assert all_of([group]) == [[0, 1, 3, 2]]


def test_of_one_subject_the_newest_speaks_and_a_decision_before_a_proposal() -> None:
    old = changed(fact(0, "Tide tables are kept in Postgres", 4), score=3.0)
    new = changed(fact(1, "Tide tables are kept in SQLite now", 400), score=2.0, updated_at=LATER)
    assert all_of(folded([old, new], SETTINGS, 5, with_nearby=True)) == [[1, 0]]
    settled = changed(old, validity=DECIDED)
    assert all_of(folded([new, settled], SETTINGS, 5, with_nearby=True)) == [[0, 1]]


def test_the_older_ones_of_a_subject_are_marked_as_earlier() -> None:
    old = changed(fact(0, "Tide tables are kept in Postgres", 4), score=3.0)
    new = changed(fact(1, "Tide tables are kept in SQLite now", 400), score=2.0, updated_at=LATER)
    [group] = folded([old, new], SETTINGS, 5, with_nearby=True)
    assert group.earlier == [old]


def test_what_the_session_went_past_stands_below_what_came_of_it() -> None:
    past = changed(fact(0, "The pump stalls (since changed)", 4), score=3.0, validity=OVERTAKEN)
    came = changed(fact(1, "Bubbles no longer stop anything", 400), score=2.0)
    assert rows_of(folded([past, came], SETTINGS, 5, with_nearby=True)) == [[1], [0]]
    elsewhere = changed(came, lines=frozenset({("s2", 400)}))
    assert rows_of(folded([past, elsewhere], SETTINGS, 5, with_nearby=True)) == [[0], [1]]
    weak = changed(came, score=1.0)
    assert rows_of(folded([past, weak], SETTINGS, 5, with_nearby=True)) == [[0], [1]]


@st.composite
def subjects(draw: st.DrawFn) -> list[SearchCandidate]:
    """Draw memories of one or two subjects, said at any time, in any order and with any validity."""
    texts = ("Tide tables are kept in {}", "Buoys report their battery level to {}")
    stores = ("Postgres", "SQLite", "Parquet", "Redis", "files", "memory")
    drawn = draw(st.lists(st.tuples(st.sampled_from(texts), st.sampled_from(stores)), min_size=2, max_size=8))
    hits = [
        changed(
            fact(row, text.format(store), draw(st.integers(1, 400))),
            score=float(20 - row),
            validity=draw(st.sampled_from((OVERTAKEN, PROPOSED, STATED, DECIDED))),
            updated_at=LATER + draw(st.integers(0, 9)),
        )
        for row, (text, store) in enumerate(drawn)
    ]
    return hits


@given(subjects())
def test_a_result_is_led_by_the_memory_of_its_subject_that_holds(hits: list[SearchCandidate]) -> None:
    groups = folded(hits, SETTINGS, 10, with_nearby=True)
    for group in groups:
        lead = group.rows[0]
        for row in group.earlier:
            assert (row.validity, row.updated_at) < (lead.validity, lead.updated_at)
            assert row in group.all[1:]
    shown = [number for numbers in all_of(groups) for number in numbers]
    assert len(shown) == len(set(shown))


@given(subjects())
def test_no_proposal_stands_above_a_decision_on_its_subject(hits: list[SearchCandidate]) -> None:
    leads = [group.rows[0] for group in folded(hits, SETTINGS, 10, with_nearby=True)]
    for at, row in enumerate(leads):
        if row.validity == PROPOSED:
            words = set(row.text.split()[:-1])
            below = leads[at + 1 :]
            assert not any(hit.validity == DECIDED and words == set(hit.text.split()[:-1]) for hit in below)


def test_a_passage_gets_a_share_of_the_memory_made_of_it() -> None:
    rows = [fact(0, "Use UTC", 4), passage(1, "tides", 4), passage(2, "gauges", 5)]
    assert boost_sources([2.0, 0.5, 0.5], rows, NUMBERS) == pytest.approx([0.0, 0.4, 0.0])


NAMES = ("tide", "gauge", "buoy", "reef", "pump", "pier", "boat")
FEW_WORDS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5)


@given(st.lists(st.tuples(FEW_WORDS, st.integers(1, 9)), max_size=12))
def test_a_row_joins_the_first_group_that_says_the_same(drawn: list[tuple[list[str], int]]) -> None:
    rows = [passage(row, " ".join(words), line) for row, (words, line) in enumerate(drawn)]
    expected: list[list[SearchCandidate]] = []
    for row in rows:
        home = next((group for group in expected if any(says_the_same(row, own) for own in group)), None)
        expected.append([row]) if home is None else home.append(row)
    assert rows_of(folded(rows, SETTINGS, 20)) == [numbers_of(group) for group in expected]


def says_the_same(row: SearchCandidate, other: SearchCandidate) -> bool:
    share = share_of_all(word_set(row.text), word_set(other.text))
    return share >= NUMBERS["duplicate_overlap"] or not row.lines.isdisjoint(other.lines)
