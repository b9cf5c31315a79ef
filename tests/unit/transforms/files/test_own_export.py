"""Our own export: put back it is what it was, to the row; a key vouches for it, and damage is refused."""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.documents.interchange import (
    CARRIED,
    as_json_text,
    document_in,
    export_in,
    is_signed_with,
    moved,
    row_of,
)
from cortex.transforms.memory.fold import PLACE_COLUMNS, fold, import_of, memory_id
from cortex.transforms.schemas import EVENTS, JOURNAL, MEMORY_TYPES, SOURCE_TYPES, TRUSTS
from tests.examples import cases
from tests.rows import memory

POLICY = read_policy(None)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
NOW = datetime(2026, 11, 1, tzinfo=UTC)

START_OF_TIME = datetime.fromtimestamp(0, UTC)
instants = st.integers(0, 2 * 10**15).map(lambda us: START_OF_TIME + timedelta(microseconds=us))
# Letters and marks that no rule takes for a secret; what is one is replaced, which is another test.
texts = st.text("abc äλ漢🌊\n\t-[]`\"'", min_size=1, max_size=30).filter(str.strip)
fractions = st.floats(0, 1)
ids = st.integers(0, 2**64).map(lambda number: f"{number:032x}")


@st.composite
def stored(draw):
    """One undecayed memory as any store may hold it."""
    scope = draw(st.sampled_from(["kelp-1a2b3c4d", "reef-0", "global"]))
    evidence = st.fixed_dictionaries(
        {
            "turn_id": ids,
            "session_id": texts,
            "file": texts,
            "lines": st.lists(st.integers(1, 2**31 - 1), max_size=3),
            "layer": texts,
            "said_at": st.none() | instants,
            "git_branch": st.none() | texts,
        }
    )
    status = draw(st.sampled_from(["active", "archived", "superseded"]))
    places = draw(st.lists(evidence, max_size=2))
    seen_on = next((place["git_branch"] for place in places), None)
    return {
        **memory(draw(ids), draw(texts)),
        **{name: draw(st.none() | texts) for name in PLACE_COLUMNS},
        "git_branch": draw(texts) if seen_on is None else seen_on,
        "project_id": scope,
        "category": "global" if scope == "global" else "project",
        "memory_type": draw(st.sampled_from(MEMORY_TYPES)),
        "reason": draw(st.none() | texts),
        "rejected": draw(st.none() | texts),
        "files": draw(st.lists(texts, max_size=2)),
        "tags": draw(st.lists(texts, max_size=2)),
        "status": status,
        "source_type": draw(st.sampled_from(SOURCE_TYPES)),
        "trust": draw(st.sampled_from(TRUSTS)),
        "is_pinned": draw(st.booleans()),
        "priority": draw(st.integers(1, 10)),
        "initial_confidence": draw(fractions),
        "salience": draw(fractions),
        "access_count": draw(st.integers(0, 9)),
        "created_at": draw(instants),
        "updated_at": draw(instants),
        **{n: draw(st.none() | instants) for n in ("last_accessed_at", "recorded_at", "archived_at")},
        "superseded_by": draw(ids) if status == "superseded" else None,
        "merged_into": draw(st.none() | ids),
        "evidence": places,
    }


def put_back(rows):
    """Return the memories that a store has after importing an export of `rows`, as it folds them."""
    document = document_in(as_json_text(rows, {}, NOW, key=KEY).encode())
    assert is_signed_with(document, KEY)
    export = export_in(document)
    assert export.unusable == 0
    rows = export.memories
    entries = JOURNAL.of(
        [import_of(r).to_row(r["project_id"], recorded_at=NOW, memory_id=r["memory_id"]) for r in rows]
    )
    return carried(fold(EVENTS.empty(), entries, POLICY).to_pylist())


def carried(rows):
    return sorted(({name: row[name] for name in CARRIED} for row in rows), key=lambda row: row["memory_id"])


# A memory has 20 columns to draw; on a busy machine that alone takes a second.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(stored(), max_size=4, unique_by=lambda row: row["memory_id"]))
def test_what_was_exported_is_put_back_to_the_row(rows):
    rows = [{"reason": None, **row} for row in rows]
    assert put_back(rows) == carried(rows)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=20)
@given(st.lists(stored(), min_size=1, max_size=3), st.data())
def test_any_change_breaks_the_signature(rows, data):
    document = json.loads(as_json_text(rows, {}, NOW, key=KEY))
    assert not is_signed_with(document, OTHER_KEY) and not is_signed_with(document, None)
    value = data.draw(st.sampled_from(document["memories"]))
    value["trust"] = "user" if value["trust"] != "user" else "tool"
    assert not is_signed_with(document, KEY)


def test_white_space_and_order_of_the_file_do_not_matter():
    document = json.loads(as_json_text([memory("a" * 32)], {}, NOW, key=KEY))
    assert is_signed_with(dict(reversed(document.items())), KEY)


@cases(
    ("column", "value"),
    [
        ("memory_id", "../etc"), ("project_id", "../../home"), ("project_id", ""), ("memory_type", "note"),
        ("status", "pruned"), ("trust", "root"), ("text", ""), ("text", None), ("text", 7),
        ("text", "<private>all of it</private>"), ("priority", 11), ("priority", True), ("salience", 1.5),
        ("salience", float("nan")), ("access_count", -1), ("access_count", 2**40), ("created_at", "soon"),
        ("created_at", None), ("files", "a.py"), ("files", [None]), ("evidence", [{}]),
        ("category", "global"),
    ],
)  # fmt: skip
def test_a_memory_that_breaks_the_format_is_unusable(column, value):
    document = json.loads(as_json_text([memory("a" * 32)], {}, NOW))
    assert row_of(document["memories"][0]) is not None
    assert row_of({**document["memories"][0], column: value}) is None


def test_a_secret_in_an_export_is_not_put_back():
    [row] = put_back([memory("a" * 32, "Log in with ghp_" + "a1B2" * 9)])
    assert "ghp_" not in row["text"]


@cases("raw", [b"", b"{}", b"[" * 100_000, b'{"format": "cortex-memories"}', b"\xff"])
def test_another_file_is_no_export(raw):
    assert document_in(raw) is None


def test_moved_memories_take_the_ids_that_their_new_project_gives_them():
    old = memory(memory_id("reef-1", "decision", "Use SQLite"), "Use SQLite")
    edited = memory("e" * 32, "Other words", superseded_by=old["memory_id"])
    new, other = moved([{**old, "superseded_by": None, "merged_into": None}, {**edited, "merged_into": None}],
                       {"reef-1": "kelp-2"})  # fmt: skip
    assert new["memory_id"] == memory_id("kelp-2", "decision", "Use SQLite")
    assert (other["project_id"], other["superseded_by"]) == ("kelp-2", new["memory_id"])
    assert other["memory_id"] != edited["memory_id"]


@cases("into", ["../../escaped", "/tmp/escaped", "a/b", "", "reef-0", "global", 7])
def test_a_project_is_merged_into_another_of_a_sound_name_or_not_at_all(into):
    document = {"memories": [], "projects": [{"project_id": "reef-0", "merged_into": into}]}
    assert export_in(document).notes == ()


def test_a_merge_of_projects_is_put_back():
    document = {"memories": [], "projects": [{"project_id": "reef-0", "merged_into": "kelp-1a2b3c4d"}]}
    assert export_in(document).notes == (("reef-0", {"merged_into": "kelp-1a2b3c4d"}),)
