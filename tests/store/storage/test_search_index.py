"""Claims about the search index: it finds what the tables hold, within the scopes asked for."""

import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cortex.hooks.evidence.index import SECTION_ROWS, index_parts, labelled_rows, section_label
from cortex.storage.tables import lance_tables, search_file, search_index
from cortex.storage.tables.lance_tables import LanceTables
from cortex.storage.tables.search_file import (
    SEARCH_FILE,
    SEARCH_VERSION,
    has_part,
    parts_in,
)
from cortex.storage.tables.search_index import IndexedRows, SearchIndex
from cortex.storage.tables.tables import INDEX_TEXT, VECTOR
from cortex.transforms.errors import TablesDamaged
from cortex.transforms.schemas import PASSAGES
from tests.rows import START, memories, memory

DIMENSIONS = 4
KINDS = pa.list_(pa.float32(), DIMENSIONS)


def searchable(*rows: dict, vector: list[float] | None = None) -> pa.Table:
    """Return memories with the words of their text, all with the same vector."""
    table = memories(*rows)
    vectors = pa.array([vector or [1.0, 0, 0, 0]] * table.num_rows, KINDS)
    return table.append_column(INDEX_TEXT, table["text"].cast(pa.string())).append_column(VECTOR, vectors)


def put(index: SearchIndex, scope: str, rows: pa.Table) -> None:
    index.replace(scope, "memories", rows, [hash(str(row)) & (1 << 64) - 1 for row in rows.to_pylist()])


def ids(rows: pa.Table) -> list[str]:
    return rows["memory_id"].to_pylist()


@pytest.fixture
def index(home: Path) -> SearchIndex:
    return SearchIndex(home / "tables" / SEARCH_FILE)


def test_words_find_by_stem_and_vectors_by_nearness(index: SearchIndex):
    near = searchable(memory("m1", "Readings are stored in SQLite"), vector=[1, 0, 0, 0])
    far = searchable(memory("m2", "Deploys go through the gateway"), vector=[0, 1, 0, 0])
    put(index, "reef-1", pa.concat_tables([near, far]))
    rows = index.rows(["reef-1"], "memories")
    assert ids(rows.search_words("storing reading", 5)) == ["m1"]
    assert ids(rows.search_vector(np.array([0.1, 1, 0, 0], np.float32), 5)) == ["m2", "m1"]


def test_what_was_written_is_read_back(index: SearchIndex):
    rows = searchable(memory("m1", "Naïve café 端口 \u2028"), memory("m2", files=["a.py"], tags=["x"]))
    put(index, "reef-1", rows)
    read = index.rows(["reef-1"], "memories").read()
    assert read.to_pylist() == rows.drop_columns([INDEX_TEXT, VECTOR]).to_pylist()
    assert index.rows(["reef-1"], "memories").read(["text"], {"memory_id": ["m2"]}).num_rows == 1


def passage(at: int, seq: int, file: str = "/t/a.jsonl") -> dict:
    names = ("passage_id", "project_id", "session_id", "turn_id", "kind", "trust", "content_hash")
    row = dict.fromkeys(names, "x") | {"passage_id": f"p{at}", "kind": "text", "said_at": START}
    return row | {"seq": seq, "text": f"Passage {at}.", "file": file, "line": at}


def section(index: SearchIndex, file: str, at: int) -> list[str]:
    with index.reading(["reef-1"]) as connection:
        parts = index_parts(connection, ["reef-1"], "passages")
        return [row["passage_id"] for row in labelled_rows(connection, parts, section_label(file, at))]


def test_the_passages_of_a_section_are_found_together_also_after_their_places_changed(index: SearchIndex):
    rows = [passage(at, at) for at in range(SECTION_ROWS + 2)] + [passage(99, 0, "/t/b.jsonl")]
    index.replace("reef-1", "passages", PASSAGES.of(rows), range(len(rows)))
    assert section(index, "/t/a.jsonl", 1) == [f"p{SECTION_ROWS}", f"p{SECTION_ROWS + 1}"]
    assert section(index, "/t/b.jsonl", 0) == ["p99"]
    moved = [passage(at, at + SECTION_ROWS) for at in range(2)]
    index.replace("reef-1", "passages", PASSAGES.of(moved), [1_000, 1_001])
    assert section(index, "/t/a.jsonl", 1) == ["p0", "p1"] and section(index, "/t/a.jsonl", 0) == []


def test_no_scope_no_word_and_no_index_find_nothing(index: SearchIndex):
    vector = np.ones(DIMENSIONS, np.float32)
    for rows in (index.rows(["reef-1"], "memories"), index.rows([], "memories")):
        assert rows.count() == rows.read().num_rows == 0
        assert rows.search_words("x", 5).num_rows == rows.search_vector(vector, 5).num_rows == 0
    put(index, "reef-1", searchable(memory("m1")))
    assert index.rows(["reef-1"], "memories").search_words(" ", 5).num_rows == 0
    assert index.rows(["other"], "memories").search_vector(vector, 5).num_rows == 0


def test_many_neighbours_are_ordered_by_their_exact_vectors(index: SearchIndex):
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(3_000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = searchable(*[memory(f"m{at:04}") for at in range(len(vectors))]).drop_columns([VECTOR])
    put(index, "reef-1", rows.append_column(VECTOR, pa.array(list(vectors), pa.list_(pa.float32(), 32))))
    exact = np.argsort(-(vectors @ vectors[5]))[:20]
    found = index.rows(["reef-1"], "memories").search_vector(vectors[5], 20)
    assert len({f"m{at:04}" for at in exact} & set(ids(found))) >= 19
    assert ids(found)[:5] == [f"m{at:04}" for at in exact[:5]]


def test_vectors_of_another_length_empty_a_part_and_are_not_compared(index: SearchIndex):
    put(index, "reef-1", searchable(memory("m1")))
    longer = searchable(memory("m1")).drop_columns([VECTOR])
    longer = longer.append_column(VECTOR, pa.array([[1.0] * 6], pa.list_(pa.float32(), 6)))
    put(index, "reef-1", longer)
    rows = index.rows(["reef-1"], "memories")
    assert ids(rows.search_vector(np.ones(6, np.float32), 5)) == ["m1"]
    assert ids(rows.search_vector(np.ones(4, np.float32), 5)) == []


def test_nothing_of_what_is_gone_stays_in_the_file(index: SearchIndex, home: Path):
    put(index, "reef-1", searchable(memory("m1", "The zanzibarkey opens it"), memory("m2", "Paint the boat")))
    put(index, "reef-1", searchable(memory("m2", "Paint the boat")))
    index.purge()
    assert [path.name for path in (home / "tables").iterdir()] == [SEARCH_FILE]
    assert b"zanzibarkey" not in (home / "tables" / SEARCH_FILE).read_bytes()
    index.drop("reef-1")
    index.purge()
    assert b"Paint" not in (home / "tables" / SEARCH_FILE).read_bytes()


def test_an_index_of_another_layout_is_not_read_and_is_replaced(index: SearchIndex, home: Path):
    path = home / "tables" / SEARCH_FILE
    put(index, "reef-1", searchable(memory("m1")))
    with sqlite3.connect(path) as connection:
        connection.execute(f"pragma user_version = {SEARCH_VERSION + 1}")
    connection.close()
    assert index.rows(["reef-1"], "memories").count() == 0 and not has_part(path, "reef-1", "memories")
    put(index, "reef-2", searchable(memory("m2")))
    assert parts_in(path) == {("reef-2", "memories")}


def test_a_damaged_index_is_named_as_damage_and_is_made_again(index: SearchIndex, home: Path):
    path = home / "tables" / SEARCH_FILE
    put(index, "reef-1", searchable(*[memory(f"m{at}", f"word{at} " * 40) for at in range(300)]))
    content = bytearray(path.read_bytes())
    content[8_192:] = b"\xff" * (len(content) - 8_192)
    path.write_bytes(content)
    with pytest.raises(TablesDamaged):
        index.rows(["reef-1"], "memories").search_words("word7", 5)
    index.drop("reef-1")
    put(index, "reef-1", searchable(memory("m1", "Use Redis")))
    assert ids(index.rows(["reef-1"], "memories").search_words("redis", 5)) == ["m1"]


def test_a_run_killed_between_table_and_index_is_made_good_by_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    class Killed(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Killed

    tables = LanceTables(home)
    tables.replace("reef-1", "memories", searchable(memory("m1")))
    new = searchable(memory("m1"), memory("m2", "Use Redis"))
    for module, name in ((search_index.PartWriter, "replace"), (search_index.PartWriter, "_add")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, dies)
            with pytest.raises(Killed):
                tables.replace("reef-1", "memories", new)
    index = LanceTables(home).open_index(["reef-1"], "memories")
    assert ids(index.read()) == ["m1"]  # as it was, whole
    LanceTables(home).replace("reef-1", "memories", new)
    assert ids(index.read()) == ["m1", "m2"]
    assert [path.name for path in (home / "tables").glob("search*")] == [SEARCH_FILE]


def test_a_reader_goes_on_while_the_index_is_written(index: SearchIndex, home: Path):
    put(index, "reef-1", searchable(memory("m1")))
    with search_file.read_index(home / "tables" / SEARCH_FILE) as reader:
        assert reader is not None
        assert reader.execute("begin").fetchone() is None
        assert reader.execute("select count(*) from bodies").fetchone() == (1,)
        put(index, "reef-1", searchable(memory("m1"), memory("m2")))
        assert reader.execute("select count(*) from bodies").fetchone() == (1,)
        reader.execute("rollback")
    assert index.rows(["reef-1"], "memories").count() == 2


def test_tables_put_in_place_by_a_rebuild_are_what_the_index_holds(home: Path):
    live = LanceTables(home)
    live.replace("reef-1", "memories", searchable(memory("m1"), memory("m2", "Use Redis")))
    rebuilt = lance_tables.RebuiltTables(live)
    rebuilt.replace("reef-1", "memories", searchable(memory("m3", "Use Postgres")))
    rebuilt.put_in_place("reef-1")
    rows: IndexedRows = live.open_index(["reef-1"], "memories")
    assert ids(rows.search_words("redis postgres", 5)) == ["m3"]
