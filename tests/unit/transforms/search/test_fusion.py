"""Fused scores order candidates as they should, neighbours lend in dialogue, duplicates fold."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.storage.reference import read_policy
from cortex.transforms.policy import Policy
from cortex.transforms.search.fusion import (
    Places,
    SearchGroup,
    SearchHit,
    Validity,
    comparable,
    folded,
    fuse,
    lend,
    lend_to_sources,
    reciprocal_ranks,
    standardised,
)

NAN = float("nan")
LATER = datetime(2026, 9, 1, tzinfo=UTC)
POLICY = read_policy(None)
scores = st.lists(st.integers(0, 50), min_size=2, max_size=20)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return POLICY


def with_numbers(policy: Policy, numbers: Mapping[str, float]) -> Policy:
    rows = dict(policy.rows["ranking"])
    for name, value in numbers.items():
        rows[(name,)] = {**rows[(name,)], "value": value}
    return replace(policy, rows={**policy.rows, "ranking": rows})


def test_a_row_good_in_both_lists_is_first(policy: Policy) -> None:
    fused = fuse(np.array([9.0, 8.0, NAN]), np.array([0.1, 0.8, 0.7]), policy)
    assert fused.argmax() == 1


def test_without_vectors_words_alone_decide(policy: Policy) -> None:
    fused = fuse(np.array([1.0, 3.0, 2.0]), np.full(3, NAN), policy)
    assert list(np.argsort(-fused)) == [1, 2, 0]


def test_a_row_without_a_vector_counts_as_average_there(policy: Policy) -> None:
    fused = fuse(np.array([5.0, 5.0, 5.0]), np.array([0.9, NAN, 0.1]), policy)
    assert fused[0] > fused[1] > fused[2]


def test_nothing_found_is_no_score(policy: Policy) -> None:
    assert fuse(np.zeros(0), np.zeros(0), policy).shape == (0,)


@given(scores)
def test_stretching_a_list_of_scores_changes_nothing(values: list[int]) -> None:
    lexical = np.array(values, dtype=np.float64)
    similarity = np.cos(lexical)
    assert np.allclose(fuse(lexical, similarity, POLICY), fuse(lexical * 4, similarity, POLICY), atol=1e-6)


def test_standardised_scores_have_mean_0_and_deviation_1() -> None:
    assert np.allclose(standardised(np.array([1.0, 3.0, NAN])), [-1.0, 1.0, 0.0])
    assert list(standardised(np.array([2.0, 2.0]))) == [0.0, 0.0]


def test_equal_scores_share_the_better_rank() -> None:
    assert np.allclose(reciprocal_ranks(np.array([5.0, 7.0, 5.0, NAN]), 60), [1 / 62, 1 / 61, 1 / 62, 0.0])


def test_reciprocal_rank_fusion_is_a_matter_of_policy(policy: Policy) -> None:
    by_rank = with_numbers(policy, {"lexical_weight": 0, "vector_weight": 0, "rrf_weight": 1})
    # By score the first row wins by far; by rank the second, which stands second and first.
    lexical, similarity = np.array([90.0, 2.0, 1.0]), np.array([0.5, 0.6, 0.55])
    assert fuse(lexical, similarity, by_rank).argmax() == 1


def test_the_same_hit_weighs_alike_in_a_small_and_a_large_table() -> None:
    # The idf of a word of one row: log(1 + (n - 1 + .5) / 1.5).
    small, large = (np.log(1 + (rows - 0.5) / 1.5) for rows in (20, 2_000))
    ratio = comparable(np.array([large]), 2_000) / comparable(np.array([small]), 20)
    assert large / small > 2.5
    assert ratio[0] == pytest.approx(1.0, abs=0.1)


def dialogue(*is_person: bool, lines: list[int] | None = None, files: list[int] | None = None) -> Places:
    count = len(is_person)
    return Places(
        np.array(files or [0] * count),
        np.arange(count),
        np.array(lines or range(1, count + 1)),
        np.array(is_person),
    )


def test_a_turn_lends_to_the_turns_around_it(policy: Policy) -> None:
    lent = lend(np.array([0.0, 2.0, 0.0, 0.0]), dialogue(True, False, True, False), policy)
    assert lent == pytest.approx([0.6, 2.0, 0.6, 0.0])


def test_what_scores_below_average_takes_nothing_away(policy: Policy) -> None:
    assert list(lend(np.array([1.0, -2.0]), dialogue(True, False), policy)) == [1.0, -2.0 + 0.3]


def test_the_assistant_alone_lends_nothing(policy: Policy) -> None:
    assert list(lend(np.array([0.0, 2.0]), dialogue(False, False), policy)) == [0.0, 2.0]


def test_tool_calls_and_other_transcripts_part_a_dialogue(policy: Policy) -> None:
    far = dialogue(True, False, lines=[1, 9])
    elsewhere = dialogue(True, False, files=[0, 1])
    for places in (far, elsewhere):
        assert list(lend(np.array([0.0, 2.0]), places, policy)) == [0.0, 2.0]


def test_memories_stand_in_no_transcript(policy: Policy) -> None:
    assert list(lend(np.array([0.0, 2.0]), dialogue(True, True, files=[-1, -1]), policy)) == [0.0, 2.0]


@given(st.permutations(range(6)))
def test_lending_does_not_depend_on_the_order_of_rows(order: list[int]) -> None:
    places = dialogue(True, False, True, False, False, True)
    values = np.array([0.5, 2.0, -1.0, 0.0, 3.0, 1.0])
    moved = Places(places.file[order], places.seq[order], places.line[order], places.is_person[order])
    assert np.allclose(lend(values, places, POLICY)[order], lend(values[order], moved, POLICY))


def rows_of(groups: list[SearchGroup]) -> list[list[int]]:
    return [list(group.rows) for group in groups]


def passage(row: int, text: str, line: int) -> SearchHit:
    return SearchHit(row, False, text, frozenset({("s1", line)}))


def fact(row: int, text: str, *lines: int) -> SearchHit:
    return SearchHit(row, True, text, frozenset(("s1", line) for line in lines))


def test_parts_of_one_turn_are_one_result(policy: Policy) -> None:
    given_rows = [passage(0, "the tide turns", 4), passage(1, "gauges", 5), passage(2, "a reef grows", 4)]
    assert rows_of(folded(given_rows, policy, 10)) == [[0, 2], [1]]


def test_a_memory_speaks_for_the_passages_it_rests_on(policy: Policy) -> None:
    given_rows = [passage(0, "the tide turns", 4), fact(1, "Use UTC", 4, 9)]
    assert rows_of(folded(given_rows, policy, 10)) == [[1, 0]]


def test_two_facts_of_one_line_stay_two(policy: Policy) -> None:
    given_rows = [fact(0, "Use UTC", 4), fact(1, "Keep one row a gauge", 4)]
    assert rows_of(folded(given_rows, policy, 10)) == [
        [0],
        [1],
    ]


def test_the_same_words_are_one_result(policy: Policy) -> None:
    assert rows_of(
        folded([fact(0, "Use UTC for times.", 4), fact(1, "use UTC for times", 8)], policy, 10)
    ) == [[0, 1]]


def test_no_more_groups_than_asked_but_late_duplicates_still_join(policy: Policy) -> None:
    given_rows = [
        passage(0, "tide", 1),
        passage(1, "reef", 2),
        passage(2, "gauge", 3),
        passage(3, "coral", 1),
    ]
    assert rows_of(folded(given_rows, policy, 2)) == [[0, 3], [1]]


def test_what_stands_near_the_best_row_of_a_session_is_shown_below_it(policy: Policy) -> None:
    given_rows = [
        replace(passage(0, "tide tables in UTC", 10), score=4.0),
        replace(passage(1, "the gauges agree", 30), score=2.5),
        replace(passage(2, "paint the boat", 12), score=0.5),
        replace(passage(3, "coral at night", 90), score=0.4),
    ]
    groups = folded(given_rows, policy, 10, by_stretch=True)
    assert [group.all for group in groups] == [(0, 1), (2,), (3,)]
    assert [group.all for group in folded(given_rows, policy, 10)] == [(0,), (1,), (2,), (3,)]


def test_no_more_stands_below_a_result_than_can_be_read_at_a_glance(policy: Policy) -> None:
    words = ("tide", "reef", "gauge", "coral", "boat", "pier")
    given_rows = [replace(passage(row, word, row + 1), score=5.0) for row, word in enumerate(words)]
    assert [len(group.nearby) for group in folded(given_rows, policy, 10, by_stretch=True)] == [3, 1]


def test_what_followed_a_question_of_the_assistant_speaks_for_it(policy: Policy) -> None:
    asking = replace(passage(0, "tag the tide release now?", 10), score=5.0, is_asking=True)
    before = replace(passage(1, "the gauges agree", 4), score=4.0)
    answer = replace(passage(2, "the reef branch is protected", 20), score=3.0)
    also = replace(passage(3, "shall the pier wait?", 22), score=3.5, is_asking=True)
    [group] = folded([asking, before, also, answer], policy, 5, by_stretch=True)
    assert group.all == (2, 0, 1, 3)
    persons = replace(asking, is_persons=True)
    [group] = folded([persons, before, also, answer], policy, 5, by_stretch=True)
    assert group.all == (0, 1, 3, 2)


def test_of_one_subject_the_newest_speaks_and_a_decision_before_a_proposal(policy: Policy) -> None:
    old = replace(fact(0, "Tide tables are kept in Postgres", 4), score=3.0)
    new = replace(fact(1, "Tide tables are kept in SQLite now", 400), score=2.0, updated_at=LATER)
    assert [group.all for group in folded([old, new], policy, 5, by_stretch=True)] == [(1, 0)]
    settled = replace(old, validity=Validity.DECIDED)
    assert [group.all for group in folded([new, settled], policy, 5, by_stretch=True)] == [(0, 1)]


def test_the_older_ones_of_a_subject_are_marked_as_earlier(policy: Policy) -> None:
    old = replace(fact(0, "Tide tables are kept in Postgres", 4), score=3.0)
    new = replace(fact(1, "Tide tables are kept in SQLite now", 400), score=2.0, updated_at=LATER)
    [group] = folded([old, new], policy, 5, by_stretch=True)
    assert group.earlier == {0}


def test_what_the_session_went_past_stands_below_what_came_of_it(policy: Policy) -> None:
    past = replace(fact(0, "The pump stalls (since changed)", 4), score=3.0, validity=Validity.OVERTAKEN)
    came = replace(fact(1, "Bubbles no longer stop anything", 400), score=2.0)
    assert rows_of(folded([past, came], policy, 5, by_stretch=True)) == [[1], [0]]
    elsewhere = replace(came, lines=frozenset({("s2", 400)}))
    assert rows_of(folded([past, elsewhere], policy, 5, by_stretch=True)) == [[0], [1]]
    weak = replace(came, score=1.0)
    assert rows_of(folded([past, weak], policy, 5, by_stretch=True)) == [[0], [1]]


@st.composite
def subjects(draw: st.DrawFn) -> list[SearchHit]:
    """Draw memories of one or two subjects, said at any time, in any order and with any validity."""
    texts = ("Tide tables are kept in {}", "Buoys report their battery level to {}")
    stores = ("Postgres", "SQLite", "Parquet", "Redis", "files", "memory")
    drawn = draw(st.lists(st.tuples(st.sampled_from(texts), st.sampled_from(stores)), min_size=2, max_size=8))
    hits = [
        replace(
            fact(row, text.format(store), draw(st.integers(1, 400))),
            score=float(20 - row),
            validity=draw(st.sampled_from(Validity)),
            updated_at=LATER + timedelta(days=draw(st.integers(0, 9))),
        )
        for row, (text, store) in enumerate(drawn)
    ]
    return hits


@given(subjects())
def test_a_result_is_led_by_the_memory_of_its_subject_that_holds(hits: list[SearchHit]) -> None:
    by_row = {hit.row: hit for hit in hits}
    groups = folded(hits, POLICY, 10, by_stretch=True)
    for group in groups:
        lead = by_row[group.rows[0]]
        for row in group.earlier:
            assert (by_row[row].validity, by_row[row].updated_at) < (lead.validity, lead.updated_at)
            assert row in group.rows[1:] + group.nearby
    shown = [row for group in groups for row in group.all]
    assert len(shown) == len(set(shown))


@given(subjects())
def test_no_proposal_stands_above_a_decision_on_its_subject(hits: list[SearchHit]) -> None:
    leads = [group.rows[0] for group in folded(hits, POLICY, 10, by_stretch=True)]
    by_row = {hit.row: hit for hit in hits}
    for at, row in enumerate(leads):
        below = [by_row[other] for other in leads[at + 1 :]]
        if by_row[row].validity is Validity.PROPOSED:
            words = set(by_row[row].text.split()[:-1])
            assert not any(
                hit.validity is Validity.DECIDED and words == set(hit.text.split()[:-1]) for hit in below
            )


def test_a_passage_gets_a_share_of_the_memory_made_of_it(policy: Policy) -> None:
    line, other = frozenset({("s1", 4)}), frozenset({("s1", 5)})
    scores = np.array([2.0, 0.5, 0.5])
    rests_on = [(True, line), (False, line), (False, other)]
    assert lend_to_sources(scores, scores, rests_on, policy) == pytest.approx([2.0, 0.9, 0.5])
