"""Machines on one store elsewhere share the tables; each makes the search index of them itself."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cortex.storage.filesystem.place import begin_copy
from cortex.storage.lake.lake import Lake
from cortex.storage.remote import store_copy
from cortex.storage.remote.store_copy import UNINDEXED_FILE, refresh
from cortex.storage.remote.store_lease import lease
from cortex.storage.tables.lance_tables import LanceTables, lancedb
from cortex.storage.tables.search_file import SEARCH_FILE, parts_in, read_index
from cortex.storage.tables.tables import INDEX_TEXT, VECTOR, with_vectors
from cortex.transforms.schemas import VECTORS
from tests.rows import memories, memory

NEAR, FAR = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
KEY = (1 << 64) - 1


@pytest.fixture
def machines(tmp_path):
    for name in ("one", "two"):
        begin_copy(tmp_path / name, f"file://{tmp_path / 'bucket'}")
    return tmp_path / "one", tmp_path / "two"


def remember(home: Path, scope: str, *texts: str, vector: list[float] = NEAR, model: str = "m") -> None:
    """Make texts the memories of a scope, with their vectors, in a run of their own."""
    with lease(home):
        vectors = VECTORS.of([{"model": model, "content_hash": text, "vector": vector} for text in texts])
        with Lake(home).change() as change:
            change.append(VECTORS, model, vectors)
        rows = memories(*[memory(text, text) for text in texts])
        at = rows.schema.get_field_index("content_hash")
        rows = rows.set_column(at, rows.schema.field(at), rows["text"].cast(rows.schema.field(at).type))
        rows = rows.append_column(INDEX_TEXT, rows["text"].cast(pa.string()))
        LanceTables(home).replace(scope, "memories", with_vectors(rows, vectors))


def index_of(home: Path) -> dict[str, object]:
    """Return what the index of a machine holds, but for the numbers that it gives to rows."""
    with read_index(home / "tables" / SEARCH_FILE) as connection:
        select = (
            "select scope, name, columns, dimensions, key, hash, body, packed, vector from parts"
            " join bodies using (part) left join texts using (row) left join vectors using (row)"
        )
        words = "select scope, word, sum(length(entries)) from postings join parts using (part) group by 1, 2"
        return {"rows": set(connection.execute(select)), "words": set(connection.execute(words))}


def nearest(home: Path, scope: str, vector: list[float]) -> dict[str, float]:
    rows = LanceTables(home).open_index([scope], "memories").search_vector(np.array(vector, np.float32), 5)
    return dict(zip(rows["memory_id"].to_pylist(), rows["similarity"].to_pylist(), strict=True))


def test_the_index_is_not_sent_and_is_the_same_on_the_other_machine(machines, tmp_path):
    one, two = machines
    remember(one, "kiln", "glaze", "zanzibarkey")
    remember(one, "harbour", "tide", vector=FAR)
    refresh(two)
    assert index_of(two) == index_of(one) and nearest(two, "harbour", FAR) == {"tide": 1.0}
    remember(two, "kiln", "glaze", "clay")
    remember(one, "harbour")
    refresh(two)
    refresh(one)
    assert index_of(two) == index_of(one)
    assert not [path for path in (tmp_path / "bucket").rglob("*") if "search" in path.name]
    assert not any(b"zanzibarkey" in path.read_bytes() for path in (two / "tables").glob("search*"))


def test_a_table_that_is_gone_is_gone_from_the_index(machines):
    one, two = machines
    remember(one, "kiln", "glaze")
    remember(one, "harbour", "tide")
    refresh(two)
    with lease(one):
        LanceTables(one).drop("kiln")
    refresh(two)
    assert parts_in(two / "tables" / SEARCH_FILE) == {("harbour", "memories")}


@pytest.mark.first_is_quick
@pytest.mark.parametrize("step", ["_download", "_remove", "_write_database", "index_tables", "keep_note"])
def test_killed_while_it_follows_the_next_look_goes_on(machines, monkeypatch, step):
    one, two = machines
    remember(one, "kiln", "glaze")
    refresh(two)
    remember(one, "kiln", "ash")
    remember(one, "harbour", "tide")
    with monkeypatch.context() as patch:
        patch.setattr(store_copy, step, killed)
        with pytest.raises(KeyboardInterrupt):
            refresh(two)
    refresh(two)
    assert index_of(two) == index_of(one)
    assert not (two / UNINDEXED_FILE).exists()


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.first_is_quick
@pytest.mark.parametrize("content", [b"\xff" * 40_000, b"", b"SQLite format 3\0" + b"\xff" * 9_000])
def test_a_damaged_index_or_list_here_is_no_reason_to_stop(machines, content):
    one, two = machines
    remember(one, "kiln", "glaze")
    refresh(two)
    (two / "tables" / SEARCH_FILE).write_bytes(content)
    (two / UNINDEXED_FILE).write_bytes(b"{]")
    remember(one, "kiln", "ash")
    refresh(two)
    path = two / "tables" / SEARCH_FILE
    assert index_of(two) == index_of(one) if path.is_file() else parts_in(path) == set()


def test_vectors_of_another_model_replace_those_of_the_first_also_here_and_of_the_same_length(machines):
    one, two = machines
    remember(one, "kiln", "glaze", vector=NEAR, model="m")
    refresh(two)
    remember(one, "kiln", "glaze", vector=FAR, model="n")
    refresh(two)
    assert nearest(one, "kiln", FAR) == nearest(two, "kiln", FAR) == {"glaze": 1.0}


def test_a_table_that_an_earlier_version_wrote_without_its_vectors_counts_as_not_made(machines):
    one, two = machines
    remember(one, "kiln", "glaze")
    with lease(one):
        lancedb().connect(str(one / "tables" / "kiln")).open_table("memories").drop_columns([VECTOR])
    refresh(two)
    assert parts_in(two / "tables" / SEARCH_FILE) == set()


def test_the_index_is_made_of_the_table_alone(machines):
    one, two = machines
    remember(one, "kiln", "glaze")
    with lease(one), Lake(one).change() as change:
        change.replace(VECTORS, "m", VECTORS.empty())
    refresh(two)
    assert index_of(two) == index_of(one)
