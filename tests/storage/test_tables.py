"""Claims about the tables: only differences are written, what is gone is gone, search finds."""

from pathlib import Path

import pyarrow as pa

from cortex.storage.tables import INDEX_TEXT, VECTOR, Tables
from tests.rows import memories, memory

DIMENSIONS = 4


def searchable(*rows: dict, vector: list[float] | None = None) -> pa.Table:
    table = memories(*rows)
    vectors = pa.array([vector or [1.0, 0, 0, 0]] * table.num_rows, pa.list_(pa.float32(), DIMENSIONS))
    return table.append_column(INDEX_TEXT, table["text"].cast(pa.string())).append_column(VECTOR, vectors)


def test_the_same_rows_again_make_no_new_version(home: Path):
    tables = Tables(home)
    rows = searchable(memory("m1"), memory("m2", "Use Redis"))
    assert tables.replace("reef-1", "memories", rows) == 2
    version = tables.open("reef-1", "memories").version
    assert tables.replace("reef-1", "memories", rows) == 0
    assert tables.open("reef-1", "memories").version == version


def test_only_what_changed_is_written_and_what_is_missing_removed(home: Path):
    tables = Tables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1"), memory("m2"), memory("m3")))
    changed = tables.replace("reef-1", "memories", searchable(memory("m1"), memory("m2", confidence=0.1)))
    assert changed == 2
    read = tables.open("reef-1", "memories").read(["memory_id", "confidence"])
    assert read.to_pylist() == [
        {"memory_id": "m1", "confidence": 0.9},
        {"memory_id": "m2", "confidence": 0.1},
    ]


def test_words_find_by_stem_and_vectors_by_nearness(home: Path):
    tables = Tables(home)
    near = searchable(memory("m1", "Readings are stored in SQLite"), vector=[1, 0, 0, 0])
    far = searchable(memory("m2", "Deploys go through the gateway"), vector=[0, 1, 0, 0])
    tables.replace("reef-1", "memories", pa.concat_tables([near, far]))
    dataset = tables.open("reef-1", "memories")
    assert dataset.search_words("storing reading", 5)["memory_id"].to_pylist() == ["m1"]
    assert dataset.search_vector([0.1, 1, 0, 0], 5)["memory_id"].to_pylist() == ["m2", "m1"]


def test_rows_added_later_are_found_by_their_words(home: Path):
    tables = Tables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1")))
    tables.replace(
        "reef-1", "memories", searchable(memory("m1"), memory("m2", "Deploys go through the gateway"))
    )
    assert tables.open("reef-1", "memories").search_words("gateway", 5)["memory_id"].to_pylist() == ["m2"]


def test_a_scope_without_tables_reads_and_searches_as_empty(home: Path):
    dataset = Tables(home).open("reef-1", "memories")
    assert dataset.count() == dataset.read().num_rows == dataset.search_words("x", 5).num_rows == 0
    assert dataset.search_vector([1, 0, 0, 0], 5).num_rows == 0


def test_tables_without_vectors_gain_them_when_a_model_comes(home: Path):
    tables = Tables(home)
    rows = searchable(memory("m1"))
    tables.replace("reef-1", "memories", rows.drop_columns([VECTOR]))
    tables.replace("reef-1", "memories", rows)
    assert tables.open("reef-1", "memories").search_vector([1, 0, 0, 0], 5)["memory_id"].to_pylist() == ["m1"]
