"""Which memories a request names: what a person or a model wrote before the session ended, never its own."""

from datetime import timedelta

from cortex.transforms.writer.written import known_memories, moments
from tests.rows import START, memories, memory

LLM = "llm:claude-haiku-5-5@session@1"
READ_AT = {"s1": START + timedelta(days=2), "s2": START + timedelta(days=4)}


def place(session_id, layer=LLM):
    return {
        "turn_id": f"turn-{session_id}",
        "session_id": session_id,
        "file": "f",
        "lines": [1],
        "layer": layer,
        "said_at": START,
        "git_branch": None,
    }


def named(*rows, session_id="s9", ended_at=START + timedelta(days=9), as_of=None):
    known = known_memories(memories(*rows), session_id, ended_at, READ_AT, as_of)
    return [each.memory_id for each in known]


WRITTEN = memory("written", "Tides are in SQLite.", evidence=[place("s1")])
EXPLICIT = memory("explicit", "Whales sing.", source_type="explicit", recorded_at=START + timedelta(days=3))


def test_what_a_person_or_a_model_wrote_is_named_and_no_fact_of_the_rules():
    rules = memory("rules", "Reefs grow.", evidence=[place("s1", "layer3:tag")])
    assert named(WRITTEN, EXPLICIT, rules) == ["written", "explicit"]


def test_what_is_over_later_a_strangers_or_an_outcome_is_not_named():
    archived = WRITTEN | {"memory_id": "a", "status": "archived"}
    strangers = WRITTEN | {"memory_id": "b", "trust": "external"}
    later = WRITTEN | {"memory_id": "c", "created_at": START + timedelta(days=10)}
    outcome = WRITTEN | {"memory_id": "d", "memory_type": "outcome"}
    assert named(archived, strangers, later, outcome) == []


def test_a_session_is_not_told_what_only_it_said():
    both = WRITTEN | {"memory_id": "both", "evidence": [place("s1"), place("s2")]}
    assert named(WRITTEN, both, session_id="s1") == ["both"]


def test_what_was_known_at_a_moment_before_can_be_named_again():
    later = memory("later", "Buoys drift.", evidence=[place("s2")])
    rows = (WRITTEN, EXPLICIT, later)
    steps = moments(memories(*rows), READ_AT)
    assert steps == sorted(steps, reverse=True)
    assert [named(*rows, as_of=at) for at in steps] == [["written", "explicit"], ["written"], []]
    answered = START + timedelta(days=5)
    assert moments(memories(*rows), READ_AT, [answered]) == [answered, *steps]
