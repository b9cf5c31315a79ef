"""Claims about the tables: only differences are written, what is gone is gone, search finds."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cortex.storage import lance_indexes as indexes
from cortex.storage import lance_tables as module
from cortex.storage.lance_tables import LanceTables
from cortex.storage.tables import INDEX_TEXT, VECTOR
from tests.rows import memories, memory

DIMENSIONS = 4


def searchable(*rows: dict, vector: list[float] | None = None) -> pa.Table:
    table = memories(*rows)
    vectors = pa.array([vector or [1.0, 0, 0, 0]] * table.num_rows, pa.list_(pa.float32(), DIMENSIONS))
    return table.append_column(INDEX_TEXT, table["text"].cast(pa.string())).append_column(VECTOR, vectors)


def test_the_same_rows_again_make_no_new_version(home: Path):
    tables = LanceTables(home)
    rows = searchable(memory("m1"), memory("m2", "Use Redis"))
    assert tables.replace("reef-1", "memories", rows) == 2
    version = tables.open("reef-1", "memories").version
    assert tables.replace("reef-1", "memories", rows) == 0
    assert tables.open("reef-1", "memories").version == version


def test_only_what_changed_is_written_and_what_is_missing_removed(home: Path):
    tables = LanceTables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1"), memory("m2"), memory("m3")))
    changed = tables.replace("reef-1", "memories", searchable(memory("m1"), memory("m2", confidence=0.1)))
    assert changed == 2
    read = tables.open("reef-1", "memories").read(["memory_id", "confidence"])
    assert read.to_pylist() == [
        {"memory_id": "m1", "confidence": 0.9},
        {"memory_id": "m2", "confidence": 0.1},
    ]


def test_words_find_by_stem_and_vectors_by_nearness(home: Path):
    tables = LanceTables(home)
    near = searchable(memory("m1", "Readings are stored in SQLite"), vector=[1, 0, 0, 0])
    far = searchable(memory("m2", "Deploys go through the gateway"), vector=[0, 1, 0, 0])
    tables.replace("reef-1", "memories", pa.concat_tables([near, far]))
    dataset = tables.open("reef-1", "memories")
    assert dataset.search_words("storing reading", 5)["memory_id"].to_pylist() == ["m1"]
    assert dataset.search_vector([0.1, 1, 0, 0], 5)["memory_id"].to_pylist() == ["m2", "m1"]


def test_rows_added_later_are_found_by_their_words(home: Path):
    tables = LanceTables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1")))
    tables.replace(
        "reef-1", "memories", searchable(memory("m1"), memory("m2", "Deploys go through the gateway"))
    )
    assert tables.open("reef-1", "memories").search_words("gateway", 5)["memory_id"].to_pylist() == ["m2"]


def test_a_scope_without_tables_reads_and_searches_as_empty(home: Path):
    dataset = LanceTables(home).open("reef-1", "memories")
    assert dataset.count() == dataset.read().num_rows == dataset.search_words("x", 5).num_rows == 0
    assert dataset.search_vector([1, 0, 0, 0], 5).num_rows == 0


def test_tables_without_vectors_gain_them_when_a_model_comes(home: Path):
    tables = LanceTables(home)
    rows = searchable(memory("m1"))
    tables.replace("reef-1", "memories", rows.drop_columns([VECTOR]))
    tables.replace("reef-1", "memories", rows)
    assert tables.open("reef-1", "memories").search_vector([1, 0, 0, 0], 5)["memory_id"].to_pylist() == ["m1"]


def test_a_kept_connection_sees_what_others_wrote_and_swapped_in(home: Path):
    ours, beside = LanceTables(home), LanceTables(home / "beside")
    ours.replace("reef-1", "memories", searchable(memory("m1")))
    assert ours.open("reef-1", "memories").search_words("redis postgres", 5).num_rows == 0
    LanceTables(home).replace("reef-1", "memories", searchable(memory("m1"), memory("m2", "Use Redis")))
    assert ours.open("reef-1", "memories").search_words("redis", 5)["memory_id"].to_pylist() == ["m2"]
    beside.replace("reef-1", "memories", searchable(memory("m1")))
    beside.replace("reef-1", "memories", searchable(memory("m1"), memory("m3", "Use Postgres")))
    versions = [tables.open("reef-1", "memories").version for tables in (ours, beside)]
    assert versions[0] == versions[1]  # else the swap could not be mistaken for what was read before
    (ours.root / "reef-1").rename(home / "old")
    (beside.root / "reef-1").rename(ours.root / "reef-1")
    assert ours.open("reef-1", "memories").read(["memory_id"])["memory_id"].to_pylist() == ["m1", "m3"]
    assert ours.open("reef-1", "memories").search_words("redis postgres", 5)["memory_id"].to_pylist() == [
        "m3"
    ]


def indexed_vectors(tables: LanceTables) -> tuple[int, int]:
    """Return (vectors in the index, its parts)."""
    handle = tables.open("reef-1", "memories")._handle
    names = [index.name for index in handle.list_indices() if index.columns == [VECTOR]]
    stats = [handle.index_stats(name) for name in names]
    return (stats[0].num_indexed_rows, stats[0].num_indices) if stats else (0, 0)


def many(*, begin: int = 0, end: int) -> pa.Table:
    """Return memories that each point in a direction of their own, every fifth without a vector."""
    angles = [np.pi * number / 100 for number in range(begin, end)]
    vectors = [
        None if number % 5 == 0 else [float(np.cos(angle)), float(np.sin(angle)), 0.0, 0.0]
        for number, angle in zip(range(begin, end), angles, strict=True)
    ]
    rows = searchable(*[memory(f"m{number:03}") for number in range(begin, end)]).drop_columns([VECTOR])
    return rows.append_column(VECTOR, pa.array(vectors, pa.list_(pa.float32(), DIMENSIONS)))


def nearest(tables: LanceTables, number: int) -> str:
    angle = np.pi * number / 100
    vector = [float(np.cos(angle)), float(np.sin(angle)), 0.0, 0.0]
    return str(tables.open("reef-1", "memories").search_vector(vector, 3)["memory_id"][0])


def test_many_vectors_are_indexed_and_rows_without_one_are_no_neighbours(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(indexes, "VECTORS_INDEXED", 40)
    tables = LanceTables(home)
    tables.replace("reef-1", "memories", many(end=45))  # 36 have one
    assert indexed_vectors(tables) == (0, 0)
    tables.replace("reef-1", "memories", many(end=60))
    assert indexed_vectors(tables)[1] == 1
    assert [nearest(tables, number) for number in (1, 23, 59)] == ["m001", "m023", "m059"]


@pytest.mark.slow
def test_vectors_written_later_are_found_and_the_index_stays_of_few_parts(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(indexes, "VECTORS_INDEXED", 20)
    tables = LanceTables(home)
    for end in range(40, 40 + 2 * (indexes.INDEX_PARTS + 4), 2):
        tables.replace("reef-1", "memories", many(end=end))
        assert nearest(tables, end - 1 if end % 5 != 1 else end - 2) in {f"m{end - 1:03}", f"m{end - 2:03}"}
        assert 1 <= indexed_vectors(tables)[1] <= indexes.INDEX_PARTS + 1
    tables.replace("reef-1", "memories", many(begin=10, end=60))
    assert nearest(tables, 3) == "m011"


def test_an_index_missing_after_a_kill_is_made_by_the_next_run(home: Path, monkeypatch: pytest.MonkeyPatch):
    tables = LanceTables(home)
    with monkeypatch.context() as killed:
        killed.setattr(module, "make_indexes", lambda handle, **columns: None)
        tables.replace("reef-1", "memories", many(end=60))
    monkeypatch.setattr(indexes, "VECTORS_INDEXED", 40)
    assert indexed_vectors(tables) == (0, 0)
    tables.replace("reef-1", "memories", many(end=60))
    assert indexed_vectors(tables)[1] == 1
    assert nearest(tables, 23) == "m023"


def test_purging_leaves_no_file_of_the_older_index(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(indexes, "VECTORS_INDEXED", 20)
    tables = LanceTables(home)
    folder = tables.root / "reef-1" / "memories.lance" / "_indices"
    tables.replace("reef-1", "memories", many(end=60))
    tables.replace("reef-1", "memories", many(begin=1, end=60))
    before = set(folder.iterdir())
    tables.purge("reef-1")
    after = [path for path in folder.iterdir() if any(path.iterdir())]
    assert len(after) == 2  # words and vectors
    assert before.isdisjoint(after)
    assert nearest(tables, 23) == "m023"
