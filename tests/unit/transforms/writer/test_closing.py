"""What a model says is no longer true is proposed: an edge from the newer memory to the one it closes."""

import json
from datetime import timedelta

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.brief.render import choose
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.validity import with_valid_time
from cortex.transforms.schemas import EDGES, JOURNAL, PROPOSED_BY_MODEL, REPLIES
from cortex.transforms.views.review import dismissal, disputes, resolved_edges
from cortex.transforms.writer.pairs import with_closings
from cortex.transforms.writer.session import ID_CHARS
from tests.examples import cases
from tests.rows import START, event, events, memories, memory

POLICY = read_policy(None)
LAYER = "llm:m@session@1"
SCOPE = memory("x", "y")["project_id"]
OLD = "Tide tables are kept in SQLite at storage/tides.db."
NEW = "Since the second writer came, Postgres on kelp-2 keeps the tide tables."
OLD_ID, NEW_ID = memory_id(SCOPE, "decision", OLD), memory_id(SCOPE, "decision", NEW)


def place(session_id, layer=LAYER):
    named = {"turn_id": f"turn-{session_id}", "session_id": session_id, "file": "f", "lines": [1]}
    return named | {"layer": layer, "said_at": START, "git_branch": None}


OLDER = memory(OLD_ID, OLD, evidence=[place("s1")], updated_at=START, trust="assistant")
NEWER = memory(NEW_ID, NEW, evidence=[place("s2")], updated_at=START + timedelta(days=1), trust="assistant")


def reply(*closes, state="holds", **chosen):
    fact = {"statement": NEW, "type": "decision", "closes": list(closes), "state": state}
    row = {
        **{"request_id": "r", "project_id": SCOPE, "session_id": "s2", "turns_hash": "h", "turn_count": 1},
        **{"turn_ids": ["turn-s2"], "known": [OLD_ID], "purpose": "session", "model": "m"},
        **{"provider": "recorded", "prompt": "session@1", "stop_reason": "end_turn"},
        **{"text": json.dumps({"outcome": {}, "facts": [fact]}), "input_tokens": 0, "output_tokens": 0},
        **{"usd": 0.0, "asked_at": START},
    }
    return row | chosen


def linked(*rows, replies, edges=(), seen=()):
    return with_closings(EDGES.of(list(edges)), memories(*rows), REPLIES.of(list(replies)), events(*seen))


CLOSED = linked(OLDER, NEWER, replies=[reply(OLD_ID[:ID_CHARS])])


def test_the_newer_memory_contradicts_the_one_it_closes():
    (edge,) = CLOSED.to_pylist()
    assert (edge["source_id"], edge["target_id"]) == (NEW_ID, OLD_ID)
    assert (edge["edge_type"], edge["rule"]) == ("contradicts", PROPOSED_BY_MODEL)


def test_the_edge_takes_the_place_of_what_the_pair_had():
    source, target = sorted((OLD_ID, NEW_ID))
    other = {"edge_id": "e", "project_id": SCOPE, "source_id": source, "target_id": target}
    other |= {"edge_type": "relates_to", "strength": 0.7, "rule": "similarity"}
    assert linked(OLDER, NEWER, replies=[reply(OLD_ID[:ID_CHARS])], edges=[other]).equals(CLOSED)


@cases(
    ("older", "newer", "answer"),
    [
        (OLDER, NEWER, reply("0123456789")),
        (OLDER, NEWER, reply(OLD_ID[:4])),
        (OLDER, NEWER, reply(NEW_ID[:ID_CHARS], known=[NEW_ID])),
        (OLDER, NEWER, reply(OLD_ID[:ID_CHARS], known=[])),
        (OLDER, NEWER, reply(OLD_ID[:ID_CHARS], session_id="s7")),
        (OLDER, NEWER | {"trust": "external"}, reply(OLD_ID[:ID_CHARS])),
        (OLDER, NEWER | {"status": "archived"}, reply(OLD_ID[:ID_CHARS])),
        (OLDER | {"status": "superseded"}, NEWER, reply(OLD_ID[:ID_CHARS])),
        (OLDER | {"updated_at": START + timedelta(days=9)}, NEWER, reply(OLD_ID[:ID_CHARS])),
        (OLDER, NEWER, reply(OLD_ID[:ID_CHARS], text="[")),
    ],
)
def test_nothing_else_is_closed(older, newer, answer):
    assert linked(older, newer, replies=[answer]).num_rows == 0


def test_a_session_read_again_closes_what_its_last_answer_says():
    again = reply(turn_ids=["turn-s2", "turn-s3"], asked_at=START + timedelta(days=2), request_id="q")
    assert linked(OLDER, NEWER, replies=[reply(OLD_ID[:ID_CHARS]), again]).num_rows == 0


@pytest.mark.parametrize("memory_type", ["decision", "gotcha"])
def test_the_review_offers_the_newer_and_a_dismissal_lets_both_stand(memory_type):
    rows = memories(OLDER | {"memory_type": memory_type}, NEWER)
    (item,) = disputes(rows, CLOSED, POLICY)
    assert (item.memory_ids, item.texts, item.detail) == ((OLD_ID, NEW_ID), (OLD, NEW), PROPOSED_BY_MODEL)
    journal = JOURNAL.of([dismissal(item).to_row(SCOPE, recorded_at=START)])
    settled = resolved_edges(CLOSED, journal)
    assert settled["edge_type"].to_pylist() == ["relates_to"]
    assert disputes(rows, settled, POLICY) == []


@pytest.mark.parametrize("memory_type", ["progress", "outcome"])
def test_where_the_work_stood_is_overtaken_without_being_asked_about(memory_type):
    assert disputes(memories(OLDER | {"memory_type": memory_type}, NEWER), CLOSED, POLICY) == []


def test_a_memory_that_two_overtake_is_asked_about_once_by_the_newest():
    newest = NEWER | {"memory_id": "ff" * 16, "updated_at": NEWER["updated_at"] + timedelta(days=1)}
    [edge] = CLOSED.to_pylist()
    both = EDGES.of([edge, edge | {"edge_id": "ee" * 16, "source_id": "ff" * 16}])
    (item,) = disputes(memories(OLDER, NEWER, newest), both, POLICY)
    assert item.memory_ids == (OLD_ID, "ff" * 16)


RECORD = memory(
    "record",
    "Goal: Move the tide tables. Outcome: Postgres on kelp-2 keeps them.",
    memory_type="outcome",
    evidence=[place("s2")],
    updated_at=START + timedelta(days=1),
    trust="assistant",
)
SEEN = event(NEW, session_id="s2", layer=LAYER, trust="assistant", confidence=0.25)


@pytest.mark.parametrize("state", ["done", "taken_back"])
def test_what_was_over_when_its_session_ended_closes_by_the_record_of_the_session(state):
    answer = reply(OLD_ID[:ID_CHARS], state=state)
    edges = linked(OLDER, RECORD, replies=[answer], seen=[SEEN])
    (edge,) = edges.to_pylist()
    assert (edge["source_id"], edge["target_id"]) == ("record", OLD_ID)
    (item,) = disputes(memories(OLDER, RECORD), edges, POLICY)
    assert item.texts == (OLD, RECORD["text"])
    for record in (RECORD, RECORD | {"status": "archived"}):
        closed = told(OLDER, record, edges)[OLD_ID]
        assert not closed.is_shown and '"Postgres on kelp-2 keeps them."' in closed.reason


@cases(
    ("record", "seen"),
    [
        (RECORD, SEEN | {"confidence": 0.0}),
        (RECORD, SEEN | {"trust": "external"}),
        (RECORD, SEEN | {"session_id": "s7"}),
        (RECORD, SEEN | {"text": OLD}),
        (RECORD | {"evidence": [place("s7")]}, SEEN),
        (RECORD | {"updated_at": START - timedelta(days=1)}, SEEN),
    ],
)
def test_what_was_over_closes_nothing_unchecked_or_without_a_record(record, seen):
    answer = reply(OLD_ID[:ID_CHARS], state="done")
    assert linked(OLDER, record, replies=[answer], seen=[seen]).num_rows == 0


SPARE = {"confidence": 0.0, "reason": "refused: says what another fact of the session says"}


@pytest.mark.parametrize(
    "seen", [SEEN, SEEN | SPARE, SEEN | SPARE | {"reason": "refused: comes after 12 others"}]
)
def test_what_is_unsure_or_said_by_another_fact_closes_by_the_record_of_the_session(seen):
    (edge,) = linked(OLDER, RECORD, replies=[reply(OLD_ID[:ID_CHARS])], seen=[seen]).to_pylist()
    assert (edge["source_id"], edge["target_id"]) == ("record", OLD_ID)


def test_what_was_refused_or_a_person_put_aside_closes_nothing_by_the_record():
    answer = reply(OLD_ID[:ID_CHARS])
    invented = SEEN | {"confidence": 0.0, "reason": "refused: its turns do not say kelp-3"}
    assert linked(OLDER, RECORD, replies=[answer], seen=[invented]).num_rows == 0
    put_aside = NEWER | {"status": "superseded"}
    assert linked(OLDER, put_aside, RECORD, replies=[answer], seen=[SEEN]).num_rows == 0


def told(older, newer=NEWER, edges=CLOSED):
    known = with_valid_time(memories(older, newer), edges, {}, POLICY)
    choices = choose(known, edges, POLICY, project_name="kelp", budget_tokens=2000)
    return {choice.memory_id: choice for choice in choices}


def test_the_brief_leaves_out_what_is_closed_and_says_why():
    assert told(OLDER, edges=EDGES.empty())[OLD_ID].is_shown
    choices = told(OLDER)
    assert choices[NEW_ID].is_shown and "contradicted" not in choices[NEW_ID].text
    assert not choices[OLD_ID].is_shown
    assert NEW[:20] in choices[OLD_ID].reason and "cortex review" in choices[OLD_ID].reason


@pytest.mark.parametrize("change", [{"source_type": "explicit"}, {"is_pinned": True}, {"trust": "user"}])
def test_what_a_person_said_stays_with_a_mark(change):
    choice = told(OLDER | change)[OLD_ID]
    assert choice.is_shown and f'[contradicted by "{NEW[:20]}' in choice.text


def test_an_unbelieved_newer_memory_leaves_nothing_out():
    assert told(OLDER, NEWER | {"initial_confidence": 0.1})[OLD_ID].is_shown
