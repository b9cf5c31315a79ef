"""Claims about the tables: only differences are written, what is gone is gone."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cortex.storage.tables.lance_tables import FILES_KEPT, LanceTables, in_own_buffers, lancedb
from cortex.storage.tables.tables import INDEX_TEXT, VECTOR
from cortex.transforms.errors import TablesDamaged
from cortex.transforms.schemas import MEMORIES
from tests.rows import memories, memory

DIMENSIONS = 4
NEAR, FAR = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]


def searchable(*rows: dict, vector: list[float] | None = None) -> pa.Table:
    table = memories(*rows)
    vectors = pa.array([vector or NEAR] * table.num_rows, pa.list_(pa.float32(), DIMENSIONS))
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


def test_a_scope_without_tables_reads_as_empty(home: Path):
    dataset = LanceTables(home).open("reef-1", "memories")
    assert dataset.count() == dataset.read().num_rows == 0


def test_a_table_of_an_earlier_version_reads_with_the_columns_of_this_one(home: Path):
    tables = LanceTables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1")).drop_columns(["subject", "valid_until"]))
    dataset = tables.open("reef-1", "memories")
    assert dataset.read().schema == MEMORIES.arrow
    assert dataset.read(["subject", "text"]).to_pylist() == [
        {"subject": None, "text": memory("m1")["text"]},
    ]
    assert tables.replace("reef-1", "memories", searchable(memory("m1", subject="cache"))) == 1
    assert tables.open("reef-1", "memories").read(["subject"]).to_pylist() == [{"subject": "cache"}]


def test_a_kept_connection_sees_what_others_wrote_and_swapped_in(home: Path):
    ours, beside = LanceTables(home), LanceTables(home / "beside")
    ours.replace("reef-1", "memories", searchable(memory("m1")))
    assert ours.open("reef-1", "memories").read().num_rows == 1
    LanceTables(home).replace("reef-1", "memories", searchable(memory("m1"), memory("m2", "Use Redis")))
    assert ours.open("reef-1", "memories").count() == ours.open("reef-1", "memories").read().num_rows == 2
    beside.replace("reef-1", "memories", searchable(memory("m1")))
    beside.replace("reef-1", "memories", searchable(memory("m1"), memory("m3", "Use Postgres")))
    versions = [tables.open("reef-1", "memories").version for tables in (ours, beside)]
    assert versions[0] == versions[1]  # else the swap could not be mistaken for what was read before
    (ours.root / "reef-1").rename(home / "old")
    (beside.root / "reef-1").rename(ours.root / "reef-1")
    assert ours.open("reef-1", "memories").read(["memory_id"])["memory_id"].to_pylist() == ["m1", "m3"]


def test_rows_that_are_kept_in_memory_are_not_shown_once_their_file_is_damaged(home: Path):
    tables = LanceTables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1"), memory("m2", "Use Redis")))
    rows = tables.open("reef-1", "memories").read()
    assert tables.open("reef-1", "memories") is tables.open("reef-1", "memories")
    assert tables.open("reef-1", "memories").read(["text"]).equals(rows.select(["text"]))
    assert tables.open("reef-1", "memories").read(where={"memory_id": ["m2"]}).equals(rows.slice(1))
    for path in (tables.root / "reef-1" / "memories.lance" / "data").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(TablesDamaged):
        tables.open("reef-1", "memories").read()


def test_after_a_purge_no_file_holds_the_words_of_a_row_that_is_gone(home: Path):
    # A history after which LanceDB hands out a null below which the words of a deleted row still lie.
    reasons = {0: "papyrus is small", 5: "vellum is dear", 8: "slate is heavy"}
    rows = [memory(f"m{at:02}", f"text {at}", reason=reasons.get(at)) for at in range(11)]
    tables = LanceTables(home)

    def files_with(word: bytes) -> list[Path]:
        return [path for path in home.rglob("*.lance") if path.is_file() and word in path.read_bytes()]

    for changed, confidence in (({0, 1, 2, 10}, 0.2), ({2, 3, 4, 6, 7, 9}, 0.77)):
        tables.replace("reef-1", "memories", searchable(*rows))
        rows = [{**row, "confidence": confidence} if at in changed else row for at, row in enumerate(rows)]
        if confidence == 0.2:
            tables.replace("reef-1", "memories", searchable(*rows))
    assert files_with(b"papyrus")
    tables.replace("reef-1", "memories", searchable(*rows[1:]))
    tables.purge("reef-1")
    assert files_with(b"papyrus") == []
    assert files_with(b"vellum")


@pytest.mark.parametrize("edited", [1, 40], ids=["one memory", "all memories"])
def test_however_often_memories_are_edited_few_files_stay(home: Path, monkeypatch, edited):
    monkeypatch.setattr("cortex.storage.tables.lance_tables.VERSIONS_KEPT", timedelta(0))
    tables, counts = LanceTables(home), []
    for edit in range(30):
        rows = [memory(f"m{at:02}", f"edit {edit if at < edited else 0} of {at}") for at in range(40)]
        tables.replace("reef-1", "memories", searchable(*rows))
        counts.append(sum(path.is_file() for path in (tables.root / "reef-1").rglob("*")))
    assert max(counts) <= 5 * FILES_KEPT  # of each write data, deletions, a transaction and a version
    assert tables.open("reef-1", "memories").read(["text"])["text"][0].as_py() == "edit 29 of 0"


def test_what_others_put_next_to_the_data_holds_no_purge_up(home: Path):
    tables = LanceTables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1"), memory("m2", "papyrus is small")))
    data = tables.root / "reef-1" / "memories.lance" / "data"
    (data / "@eaDir").mkdir()
    (data / ".DS_Store").write_bytes(b"theirs")
    tables.replace("reef-1", "memories", searchable(memory("m1")))
    tables.purge("reef-1")
    assert not any(b"papyrus" in path.read_bytes() for path in data.iterdir() if path.is_file())
    assert (data / "@eaDir").is_dir() and (data / ".DS_Store").is_file()


def test_rows_are_written_without_what_lies_below_a_null_or_was_filtered_out():
    spelt = pa.array(["reed", "papyrus", "slate"])
    below = pa.StringArray.from_buffers(3, spelt.buffers()[1], spelt.buffers()[2], pa.py_buffer(b"\x05"))
    rows = in_own_buffers(
        pa.table({"text": below, "slice": pa.chunked_array([spelt.slice(2), spelt.slice(0, 1), ["x"]])})
    )
    buffers = [part for column in rows.columns for chunk in column.chunks for part in chunk.buffers() if part]
    assert below.to_pylist() == rows["text"].to_pylist() == ["reed", None, "slate"]
    assert not any(b"papyrus" in part.to_pybytes() for part in buffers)


def test_the_vectors_are_in_the_table_and_whoever_opens_it_can_search_it(home: Path):
    tables = LanceTables(home)
    near, far = (searchable(memory(name), vector=vector) for name, vector in (("m1", NEAR), ("m2", FAR)))
    tables.replace("reef-1", "memories", pa.concat_tables([near, far]))
    opened = lancedb().connect(str(home / "tables" / "reef-1")).open_table("memories")
    assert opened.search(FAR).distance_type("cosine").limit(1).to_arrow()["memory_id"].to_pylist() == ["m2"]
    assert opened.schema.field(VECTOR).type == pa.list_(pa.float16(), DIMENSIONS)


def test_a_table_of_an_earlier_version_gets_its_vectors_with_the_next_write(home: Path):
    tables, rows = LanceTables(home), searchable(memory("m1"), memory("m2"))
    tables.replace("reef-1", "memories", rows)
    lancedb().connect(str(home / "tables" / "reef-1")).open_table("memories").drop_columns([VECTOR])
    assert tables.replace("reef-1", "memories", rows) == 2
    assert tables.open("reef-1", "memories").read([VECTOR])[VECTOR].null_count == 0


def test_a_row_without_a_vector_has_none_in_the_table_and_gets_it_once_there_is_one(home: Path):
    tables, rows = LanceTables(home), searchable(memory("m1"))
    none = pa.nulls(1, rows.schema.field(VECTOR).type)
    without = rows.set_column(rows.schema.get_field_index(VECTOR), VECTOR, none)
    tables.replace("reef-1", "memories", without)
    assert tables.open("reef-1", "memories").read([VECTOR])[VECTOR].to_pylist() == [None]
    assert tables.replace("reef-1", "memories", rows) == 1
    assert tables.open("reef-1", "memories").read([VECTOR])[VECTOR].to_pylist() == [NEAR]


def test_after_a_purge_no_file_holds_the_vector_of_a_row_that_is_gone(home: Path):
    tables, gone = LanceTables(home), [0.3, 0.2, 0.8, 0.1]
    tables.replace(
        "reef-1",
        "memories",
        pa.concat_tables([searchable(memory("m1")), searchable(memory("m2"), vector=gone)]),
    )
    written = np.array(gone, np.float16).tobytes()

    def files_with_it() -> list[Path]:
        return [path for path in home.rglob("*") if path.is_file() and written in path.read_bytes()]

    assert any(path.suffix == ".lance" for path in files_with_it())
    tables.replace("reef-1", "memories", searchable(memory("m1")))
    tables.purge("reef-1")
    assert files_with_it() == []
