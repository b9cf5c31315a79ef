"""Rows of merged projects fold as if all had been said in one."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.memory.merged_projects import (
    fold_joined,
    in_project,
    joined_names,
    renamed,
)
from cortex.transforms.schemas import JOURNAL
from tests.examples import examples
from tests.rows import START, entry, event, events

POLICY = read_policy(None)
NO_JOURNAL = JOURNAL.empty()
FACTS = ("Use SQLite.", "Keep UTC.", "Poll slowly.")


def said(fact: str, project: str, number: int, **chosen: object) -> dict[str, object]:
    turn = f"{project}-{number}"
    return event(
        fact,
        project_id=project,
        turn_id=turn,
        event_id=f"event-{turn}",
        session_id=f"{project}-s{number}",
        said_at=START + timedelta(hours=number),
        **chosen,
    )


def journal(*entries: dict[str, object]):
    return JOURNAL.of(list(entries))


def test_the_same_fact_of_two_projects_is_one_memory_with_the_evidence_of_both():
    rows = events(said("Use SQLite.", "reef", 1), said("use `SQLite`", "kelp", 2))
    [memory] = fold_joined(rows, NO_JOURNAL, POLICY, "kelp").to_pylist()
    assert memory["memory_id"] == memory_id("kelp", "decision", "Use SQLite.")
    assert {found["session_id"] for found in memory["evidence"]} == {"reef-s1", "kelp-s2"}
    assert memory["project_id"] == "kelp"


def test_one_project_alone_folds_as_ever():
    rows = events(said("Use SQLite.", "kelp", 1))
    assert fold_joined(rows, NO_JOURNAL, POLICY, "kelp").equals(fold(rows, NO_JOURNAL, POLICY))
    assert joined_names(rows, NO_JOURNAL, POLICY, "kelp") == {}


@pytest.mark.parametrize("kind", ["pin", "archive", "forget"])
def test_an_entry_about_a_merged_projects_memory_finds_it_under_its_new_id(kind):
    rows = events(said("Use SQLite.", "reef", 1))
    old = memory_id("reef", "decision", "Use SQLite.")
    told = journal(entry(kind, "reef", {}, recorded_at=START + timedelta(days=1), memory_id=old))
    made = fold_joined(rows, told, POLICY, "kelp").to_pylist()
    expected = fold(in_project(rows, "kelp"), NO_JOURNAL, POLICY).to_pylist()
    assert [row["memory_id"] for row in made] == ([] if kind == "forget" else [expected[0]["memory_id"]])
    assert kind != "pin" or made[0]["is_pinned"]
    assert kind != "archive" or made[0]["status"] == "archived"


def test_a_pruned_tombstone_takes_nothing_of_the_other_projects_like_fact():
    rows = events(said("Use SQLite.", "kelp", 1))
    told = {"memory_type": "decision", "source_type": "conversation", "trust": "user"}
    times = {name: START.isoformat() for name in ("created_at", "updated_at")}
    old = memory_id("reef", "decision", "Use SQLite.")
    at = START + timedelta(days=90)
    tomb = entry("forget", "reef", {"pruned": told | times}, recorded_at=at, memory_id=old)
    made = {row["memory_id"]: row for row in fold_joined(rows, journal(tomb), POLICY, "kelp").to_pylist()}
    assert made[memory_id("kelp", "decision", "Use SQLite.")]["text"] == "Use SQLite."
    assert made[old]["status"] == "pruned"


@given(
    st.lists(st.tuples(st.sampled_from(FACTS), st.sampled_from(["reef", "kelp", "bay"])), max_size=8),
    st.lists(st.tuples(st.sampled_from(FACTS), st.sampled_from(["reef", "kelp", "bay"])), max_size=5),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(60), deadline=None)
def test_merged_they_are_what_one_project_would_have_made_of_it(spoken, pinned, random):
    rows = [said(fact, project, number) for number, (fact, project) in enumerate(spoken)]
    wishes = [
        entry(
            "pin",
            project,
            {},
            recorded_at=START + timedelta(days=1, minutes=minute),
            memory_id=memory_id(project, "decision", fact),
        )
        for minute, (fact, project) in enumerate(pinned)
        if (fact, project) in spoken
    ]
    as_told_in_one = {
        memory_id(project, "decision", fact): memory_id("kelp", "decision", fact)
        for fact in FACTS
        for project in ("reef", "bay")
    }
    table, told = events(*rows), journal(*wishes)
    expected = fold(in_project(table, "kelp"), renamed(told, as_told_in_one, "kelp"), POLICY)
    random.shuffle(rows)
    assert fold_joined(events(*rows), told, POLICY, "kelp").equals(expected)
