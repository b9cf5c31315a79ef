"""Contradictions worth reading: most of the planted ones are found, and what only looks like one is left."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.brief.render import choose
from cortex.transforms.memory.link import PRACTICE_ENDED, contrary_rules, edges_between
from cortex.transforms.memory.validity import with_valid_time
from cortex.transforms.schemas import VECTORS
from cortex.transforms.views.review import disputes
from tests.contrary import NEAR_MISSES, PLANTED
from tests.examples import cases
from tests.rows import START, memories, memory

POLICY = read_policy(None)
MODEL = "all-MiniLM-L6-v2"


def linked(earlier, later, policy=POLICY):
    """Return two memories that mean much the same, the later of less trust, and their edges."""
    rows = memories(
        memory("a", earlier, content_hash="a"),
        memory("b", later, content_hash="b", updated_at=START + timedelta(days=1), trust="assistant"),
    )
    near = [{"model": MODEL, "content_hash": name, "vector": [1.0, 0.0]} for name in ("a", "b")]
    return rows, edges_between(rows, VECTORS.of(near), policy, MODEL)


@cache
def rule_of(earlier, later):
    """Return the rule by which two are at odds, or nothing."""
    edges = linked(earlier, later)[1].to_pylist()
    return next((edge["rule"] for edge in edges if edge["edge_type"] == "contradicts"), "")


@pytest.fixture(scope="module")
def found():
    planted = Counter(rule_of(*pair) for pair in PLANTED)
    near_misses = Counter(rule_of(*pair) for pair in NEAR_MISSES)
    return planted, near_misses


def explained(explanation, word, **chosen):
    """Return whether a gotcha of the assistant's holds after a person's word, and the rule that says so."""
    rows = memories(
        memory("a", explanation, memory_type="gotcha", trust="assistant", content_hash="a"),
        memory("b", word, memory_type="pattern", content_hash="b", updated_at=START + timedelta(days=1))
        | chosen,
    )
    near = [{"model": MODEL, "content_hash": name, "vector": [1.0, 0.0]} for name in ("a", "b")]
    edges = edges_between(rows, VECTORS.of(near), POLICY, MODEL)
    until = with_valid_time(rows, edges, {}, POLICY)["valid_until"][0].as_py()
    return until is None, {edge["rule"] for edge in edges.to_pylist() if edge["edge_type"] == "contradicts"}


ENDED = (
    (
        "The next time you sign a commit, git asks for the passphrase.",
        "I do not want to sign my commits anymore.",
    ),
    ("Mirroring the bucket takes an hour when the cache is cold.", "We don't mirror the bucket any more."),
    ("To squash branches, the bot needs write access.", "Please do not squash branches anymore."),
)
NOT_ENDED = (
    ("Generated clients that are committed break the merge.", "Do not commit generated clients."),
    ("A signed tag is needed for each release.", "I do not want to sign my commits anymore."),
    ("Do not squash branches: the bot loses the authors.", "Please do not squash branches anymore."),
)


def test_what_explains_a_practice_is_closed_when_a_person_ends_it():
    assert [explained(*pair) for pair in ENDED] == [(False, {PRACTICE_ENDED})] * len(ENDED)
    assert [explained(*pair) for pair in NOT_ENDED] == [(True, set())] * len(NOT_ENDED)


def test_no_assistant_ends_a_practice():
    assert explained(*ENDED[0], trust="assistant") == (True, set())


def test_four_of_five_planted_are_found_and_nine_of_ten_found_are_right(found):
    planted, near_misses = found
    right = sum(planted.values()) - planted[""]
    wrong = sum(near_misses.values()) - near_misses[""]
    assert (len(PLANTED), len(NEAR_MISSES)) == (42, 40)
    assert right / len(PLANTED) >= 0.8
    assert right / (right + wrong) >= 0.9


def test_each_rule_is_as_precise_as_its_row_says(found):
    planted, near_misses = found
    rows = {row["rule"]: row["precision"] for row in POLICY.rows["contrary_rules"].values()}
    assert rows.pop(PRACTICE_ENDED) == 1  # of ENDED and NOT_ENDED
    assert rows.keys() >= (planted | near_misses).keys() - {""}
    assert {rule: planted[rule] / (planted[rule] + near_misses[rule]) for rule in rows} == rows


@cases("pair", [*PLANTED, *NEAR_MISSES])
def test_which_of_two_came_first_makes_no_difference(pair):
    assert bool(rule_of(*pair)) == bool(rule_of(*reversed(pair)))


def less_precise(rule):
    """Return the policy as if so much of what a rule finds were wrong that nothing may follow from it."""
    tables = dict(POLICY.rows)
    rows = {key: {**row, "precision": 0.89} if row["rule"] == rule else row
            for key, row in tables["contrary_rules"].items()}  # fmt: skip
    return replace(POLICY, rows={**tables, "contrary_rules": rows})


def shown(rows, edges, policy):
    choices = choose(rows, edges, policy, project_name="reef", budget_tokens=1000)
    return [choice.text for choice in choices if choice.is_shown]


def test_a_rule_below_nine_of_ten_leaves_no_mark_in_a_brief_and_ends_nothing():
    earlier, later = "Uploads are limited to 10 MB.", "Uploads are limited to 50 MB."
    for policy, is_marked in ((POLICY, True), (less_precise("number"), False)):
        rows, edges = linked(earlier, later, policy)
        assert any("contradicted by" in line for line in shown(rows, edges, policy)) == is_marked
        alike = memories(*({**row, "trust": "user"} for row in rows.to_pylist()))
        ended = with_valid_time(alike, edges, {}, policy)["valid_until"].to_pylist()
        assert any(ended) == is_marked
        assert len(disputes(rows, edges, policy)) == 1  # the review asks either way


def test_the_rules_stand_in_the_order_of_the_review():
    assert contrary_rules(POLICY)[0] == "each_chooses_what_the_other_rejects"
    sure = contrary_rules(less_precise("number"), is_sure=True)
    assert [rule for rule in contrary_rules(POLICY) if rule not in sure] == ["number"]
