"""Scores against labels, on made tables where every figure is known."""

from cortex.transforms.extract.evaluate import Evaluation, evaluate
from tests.rows import event, events

ITEM = {
    "kind": "item",
    "session": "s1.jsonl",
    "type": "decision",
    "text": "Tides are kept in SQLite",
    "evidence_lines": [10],
    "key_terms": ["sqlite"],
    "importance": 3,
    "status": "current",
}
TRAP = {
    "kind": "trap",
    "session": "s1.jsonl",
    "text": "tests pass everywhere",
    "lines": [30],
    "why": "refuted",
}


def scores_of(kept, labels) -> Evaluation:
    return evaluate(kept, labels, least_shown=0.5)


def test_an_item_is_found_two_lines_away_and_not_three() -> None:
    near = scores_of(events(event("We use SQLite", lines=[12])), [ITEM])
    far = scores_of(events(event("We use SQLite", lines=[13])), [ITEM])
    assert (near.recall, near.recall_importance_3, far.recall) == (1.0, 1.0, 0.0)


def test_all_key_terms_must_be_in_the_text() -> None:
    assert scores_of(events(event("We use Postgres", lines=[10])), [ITEM]).recall == 0.0


def test_weak_events_and_other_sessions_count_for_nothing() -> None:
    weak = event("We use SQLite", lines=[10], confidence=0.49)
    elsewhere = event("We use SQLite", lines=[10], file="/t/other.jsonl")
    assert scores_of(events(weak, elsewhere), [ITEM]).recall == 0.0


def test_the_twenty_first_memory_is_out_of_budget() -> None:
    rows = [event(f"Fact number {n}", lines=[n + 100], confidence=0.9) for n in range(20)]
    scores = scores_of(events(*rows, event("We use SQLite", lines=[10], confidence=0.6)), [ITEM])
    assert (scores.recall, scores.recall_unbudgeted, scores.memories_per_session) == (0.0, 1.0, 20.0)


def test_a_trap_is_hit_on_its_lines_with_most_of_its_words() -> None:
    hit = scores_of(events(event("All tests pass everywhere now", lines=[30])), [TRAP])
    beside = scores_of(events(event("The tests moved", lines=[30])), [TRAP])
    assert (hit.traps_hit, beside.traps_hit) == (1.0, 0.0)


def test_superseded_items_that_are_shown_are_counted() -> None:
    old = {**ITEM, "status": "superseded"}
    assert scores_of(events(event("We use SQLite", lines=[10])), [old]).superseded_shown == 1


def test_a_repeated_memory_is_a_duplicate() -> None:
    twice = events(event("Tides live in SQLite files"), event("Tides live in SQLite files, really"))
    assert scores_of(twice, [ITEM]).duplicates == 1


def test_the_steps_of_a_plan_count_as_one_memory() -> None:
    plan = {"memory_type": "progress", "subject": "p1", "event_type": "PLAN_CREATED", "lines": [10]}
    step = {**plan, "event_type": "PLAN_STEP_COMPLETED", "step_status": "pending", "turn_id": "t2"}
    scores = scores_of(events(event("Plan: Store tides", **plan), event("Use SQLite", **step)), [ITEM])
    assert (scores.memories_per_session, scores.recall) == (1.0, 1.0)
