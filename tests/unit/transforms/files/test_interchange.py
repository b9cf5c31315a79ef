"""Export and import: ours comes back as it was, others' shapes as their documentation shows them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.transforms.documents.interchange import Imported, as_json_text, as_markdown, read_export
from cortex.transforms.errors import NothingUsable
from cortex.transforms.schemas import MEMORY_TYPES
from tests.examples import cases
from tests.rows import START, memory

NAMES = {"reef-1": "reef"}


def read(told: object) -> list[Imported]:
    return list(read_export(json.dumps(told).encode()).memories)


def test_an_own_export_that_nobody_vouches_for_gives_facts_and_no_trust():
    row = memory(text="Use SQLite", priority=8, is_pinned=True, tags=["sqlite"], files=["a.py"])
    [one] = read_export(as_json_text([full(row)], NAMES, START).encode()).memories
    assert one == Imported(
        "Use SQLite",
        "decision",
        priority=8,
        tags=("sqlite",),
        files=("a.py",),
        trust="external",
        created_at=START.isoformat(),
        project="reef-1",
        memory_id=row["memory_id"],
    )


@pytest.mark.parametrize("status", ["superseded", "archived"])
def test_what_another_store_put_away_is_not_taken_in(status):
    rows = [full(memory("m1", "Old", status=status)), full(memory("m2", "New"))]
    read_back = read_export(as_json_text(rows, NAMES, START).encode())
    assert ([one.text for one in read_back.memories], read_back.unusable) == (["New"], 1)


def test_the_same_memories_give_the_same_bytes_in_any_order():
    rows = [full(memory(name)) for name in ("m1", "m2", "m3")]
    assert as_json_text(rows, NAMES, START) == as_json_text(rows[::-1], NAMES, START)
    assert as_markdown(rows, NAMES) == as_markdown(rows[::-1], NAMES)


def test_markdown_holds_active_memories_by_project_and_type():
    rows = [
        full(memory("m1", "Use SQLite")),
        full(memory("m2", "Tides count from midnight", memory_type="gotcha")),
        full(memory("m3", "Gone", status="archived")),
    ]
    assert as_markdown(rows, NAMES).split("\n", 1)[1] == (
        "\n# reef <!-- reef-1 -->\n\n## decision\n\n- Use SQLite\n"
        "\n## gotcha\n\n- Tides count from midnight\n"
    )


facts = st.tuples(st.text(min_size=1, max_size=40).filter(str.strip), st.sampled_from(MEMORY_TYPES))


@given(st.lists(facts, min_size=1, max_size=5))
def test_markdown_comes_back_with_any_text(facts):
    rows = [full(memory(f"m{at}", text, memory_type=kind)) for at, (text, kind) in enumerate(facts)]
    made = read_export(as_markdown(rows, NAMES).encode("utf-8", "surrogatepass")).memories
    assert sorted((one.text, one.memory_type, one.project) for one in made) == sorted(
        (text, kind, "reef-1") for text, kind in facts
    )


def test_a_plain_list_becomes_context_and_its_tags_become_types():
    text = (
        "Some prose.\n\n* One thing\n1. Another\n- [ ] A task\n- [gotcha] Mind the tide\n"
        "- [MEMORY: decision] Use SQLite\n"
    )
    assert [(one.text, one.memory_type) for one in read_export(text.encode()).memories] == [
        ("One thing", "context"),
        ("Another", "context"),
        ("A task", "context"),
        ("Mind the tide", "gotcha"),
        ("Use SQLite", "decision"),
    ]


def test_claude_mem_observations_are_read():
    told = {
        "exportedAt": "2026-09-01T00:00:00Z",
        "totalObservations": 1,
        "observations": [
            {
                "type": "bugfix",
                "title": "Tides were read as UTC",
                "subtitle": "Clock fix",
                "narrative": "The table counts from local midnight.",
                "facts": '["Midnight is local"]',
                "concepts": '["time", "gotcha"]',
                "files_modified": '["tides.py"]',
                "project": "reef",
                "created_at_epoch": 1_788_220_800_000,
            }
        ],
        "sessions": [],
        "summaries": [],
        "prompts": [],
    }
    assert read(told) == [
        Imported(
            "Tides were read as UTC. The table counts from local midnight.",
            "gotcha",
            tags=("time", "gotcha"),
            files=("tides.py",),
            created_at="2026-09-01T00:00:00+00:00",
        )
    ]


def test_memories_of_mcp_memory_service_are_read():
    told = {
        "export_metadata": {"source_machine": "shore", "total_memories": 1},
        "memories": [
            {
                "content": "Use SQLite",
                "content_hash": "ab12",
                "tags": ["db"],
                "memory_type": "decision",
                "created_at": 1_788_220_800.5,
            }
        ],
    }
    assert read(told) == [
        Imported("Use SQLite", "decision", tags=("db",), created_at="2026-09-01T00:00:00.500000+00:00")
    ]


@pytest.mark.parametrize("wrapped", [lambda m: {"results": m}, lambda m: {"memories": m}, lambda m: m])
def test_memories_of_mem0_are_read(wrapped):
    entry = {
        "id": "3c90c3cc",
        "memory": "Prefers metric units",
        "metadata": {"category": "preference"},
        "categories": ["units"],
        "created_at": "2026-09-01T05:31:56Z",
    }
    assert read(wrapped([entry])) == [
        Imported("Prefers metric units", "pattern", tags=("units",), created_at="2026-09-01T05:31:56+00:00")
    ]


def test_what_others_say_is_external():
    assert {one.trust for one in read({"results": [{"memory": "x", "trust": "user"}]})} == {"external"}


def test_unusable_entries_are_counted():
    read_back = read_export(json.dumps({"results": [{"memory": "x"}, {"memory": ""}, 7]}).encode())
    assert (len(read_back.memories), read_back.unusable) == (1, 2)


@cases("raw", [b"", b"prose without a list", b"{}", b"[]", b'{"memories": 3}', b"null", b"\xff"])
def test_a_file_without_a_memory_is_refused(raw):
    with pytest.raises(NothingUsable):
        read_export(raw)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "memories",
                        "results",
                        "observations",
                        "memory",
                        "content",
                        "title",
                        "format",
                        "created_at",
                        "created_at_epoch",
                        "tags",
                        "metadata",
                        "type",
                    ]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_no_json_breaks_the_reader(told):
    try:
        made = read_export(json.dumps(told).encode())
    except NothingUsable:
        return
    assert all(one.text.strip() for one in made.memories)


def full(row: dict[str, object]) -> dict[str, object]:
    return {"reason": None, "rejected": None, **row}


def test_json_that_is_nested_too_deeply_holds_no_memory():
    with pytest.raises(NothingUsable):
        read_export(b"[" * 300_000)
