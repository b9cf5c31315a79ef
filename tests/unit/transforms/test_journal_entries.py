"""Claims about journal entries: a row says what was written, to the byte, and foreign ones are refused."""

import json
from dataclasses import MISSING, fields

import pytest

from cortex.transforms.errors import UnknownValue
from cortex.transforms.journal_entries import (
    ENTRIES,
    FIELDS,
    ImportFact,
    ProjectMerge,
    Remember,
    UnknownEntry,
    checked_entry,
    entry_in,
    entry_of,
    from_row,
)
from cortex.transforms.schemas import JOURNAL_KINDS
from tests.examples import cases
from tests.rows import START

FACT = {"text": "Use SQLite", "memory_type": "decision", "category": "project"}
MEMORY = {
    **FACT,
    **{"files": [], "tags": [], "evidence": []},
    **{"status": "active", "source_type": "conversation", "trust": "user", "pinned": False, "priority": 5},
    **{"initial_confidence": 0.9, "salience": 1.0, "access_count": 0},
    **dict.fromkeys(("created_at", "updated_at"), START.isoformat()),
    **dict.fromkeys(("reason", "rejected", "last_accessed_at", "recorded_at", "archived_at")),
    **dict.fromkeys(("superseded_by", "merged_into")),
}
TOMB = {"memory_type": "decision", "source_type": "conversation", "trust": "user"}
TIMES = {"created_at": START.isoformat(), "updated_at": START.isoformat()}
PAYLOADS = [
    ("remember", FACT | {"priority": 5, "pinned": False, "files": []}),
    ("remember", FACT | {"source_type": "code_index", "trust": "tool", "files": ["a.py"]}),
    ("import", FACT | {"tags": [], "files": [], "priority": 3, "trust": "external"}),
    ("import", MEMORY),
    ("edit", {"text": "über"}),
    ("pin", {}),
    ("unpin", {}),
    ("forget", {}),
    ("forget", {"turn_ids": []}),
    ("forget", {"session_ids": ["s1"]}),
    ("forget", {"everything": True}),
    ("forget", {"of": "e1", "turn_ids": ["t1"]}),
    ("forget", {"pruned": TOMB | TIMES}),
    ("supersede", {"by": "m2"}),
    ("merge", {"members": ["a", "b"], "text": "both", "memory_type": "decision"}),
    ("unmerge", {}),
    ("archive", {"reason": "a.py is gone"}),
    ("restore", {}),
    ("recall", {"memory_ids": ["m1"], "told": ["mark"]}),
    ("recall", {"memory_ids": []}),
    ("dismiss", {"item": "stale", "memory_ids": ["m1"], "reason": "a.py is gone"}),
    ("confirm", {}),
    ("fade", {"memory_ids": ["m1"]}),
    ("recover", {"memory_ids": ["m1"]}),
    ("prune", TOMB | TIMES),
    ("worked", {"active_at": [START.isoformat()]}),
    ("project", {"cwd": "/reef", "name": "reef", "identity": "path:/reef"}),
    ("project", {"name": "Reef"}),
    ("project", {"merged_into": "kelp-1"}),
    ("project", {"merged_into": None}),
    ("checkpoint", {"name": "before"}),
    ("team", {"text": "Use UTC.", "memory_type": "decision", "paths": ["a.md"], "authors": ["Ana"]}),
    ("withdraw", {}),
    ("withdraw", {"by": "m2"}),
]


@cases(("kind", "payload"), PAYLOADS)
@cases("others", [{}, {"others": 1, "of another version": [2]}])
def test_a_row_read_and_written_again_is_the_same_to_the_byte(kind, payload, others):
    text = json.dumps(payload | others, ensure_ascii=False, sort_keys=True)
    entry = checked_entry(kind, json.loads(text))
    assert entry.payload == text
    row = entry.to_row("reef-1", recorded_at=START, memory_id="m1")
    assert from_row(row).to_row("reef-1", recorded_at=START, memory_id="m1") == row
    waiting = json.dumps(row | {"recorded_at": START.isoformat()})
    assert entry_in(waiting.encode()) == row


def test_every_kind_has_a_class_and_is_tried_here():
    assert {entry.kind for entry in ENTRIES} == set(JOURNAL_KINDS) == {kind for kind, _ in PAYLOADS}
    assert {type(entry_of(kind, payload)) for kind, payload in PAYLOADS} == set(ENTRIES)


# By these two a payload is told from another of its kind.
DECIDING = ("initial_confidence", "cwd")


@cases(("kind", "payload"), PAYLOADS)
def test_a_field_of_another_type_or_missing_is_refused(kind, payload):
    entry = entry_of(kind, payload)
    required = {field.name for field in fields(entry) if field.default is MISSING}
    for key, name in FIELDS[type(entry)].items():
        with pytest.raises((TypeError, ValueError)):
            checked_entry(kind, payload | {key: ("a", "tuple")})
        if name in required and key not in DECIDING:
            with pytest.raises((TypeError, ValueError)):
                checked_entry(kind, {k: v for k, v in payload.items() if k != key})


@pytest.mark.parametrize("name", ["memory_type", "category", "trust"])
def test_a_value_outside_its_closed_set_is_refused(name):
    with pytest.raises(UnknownValue):
        checked_entry("remember", FACT | {name: "other"})


@cases("payload", [[], "text", None, 7])
def test_a_payload_that_is_no_object_is_refused(payload):
    with pytest.raises(ValueError, match="not the payload"):
        entry_of("pin", payload)


def test_an_entry_of_another_version_is_carried_and_not_written():
    entry = entry_of("paint", {"colour": "red"})
    assert entry == UnknownEntry(others={"colour": "red"})
    with pytest.raises(UnknownValue):
        entry.to_row("reef-1", recorded_at=START)


def test_what_is_left_out_stays_out_and_null_stays_where_it_means_something():
    assert Remember("Use SQLite", "decision", "project").payload == json.dumps(FACT, sort_keys=True)
    assert ProjectMerge(None).payload == '{"merged_into": null}'
    assert isinstance(entry_of("import", FACT), ImportFact)
