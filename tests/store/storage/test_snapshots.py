"""Claims about snapshots: rows of a scope come back as they were written, however they were grouped."""

import pytest

from cortex.storage.published import published
from cortex.storage.published.published import SnapshotFile, write_snapshot
from cortex.transforms.schemas import MEMORIES
from tests.rows import memories, memory

MADE_OF = {"kelp": "1", "reef": "2", "bare": "3"}


@pytest.mark.parametrize("together", [1, 2, 50])
def test_each_scope_has_its_rows_in_their_order(tmp_path, monkeypatch, together):
    monkeypatch.setattr(published, "ROWS_AT_ONCE", together)
    kelp = memories(*(memory(f"k{at}", project_id="kelp", files=["a.py"]) for at in range(3)))
    reef = memories(memory("r1", project_id="reef"), memory("r2", project_id="reef"))
    path = tmp_path / "memories.parquet"
    write_snapshot(tmp_path, path, MEMORIES, iter([kelp, memories(), reef]), MADE_OF)
    snapshot = SnapshotFile(path, MEMORIES)
    assert snapshot.fingerprints == MADE_OF
    assert [snapshot.rows_of(name) for name in ("reef", "kelp", "bare")] == [reef, kelp, memories()]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [path]


def test_without_fingerprints_nothing_is_reused(tmp_path):
    path = tmp_path / "memories.parquet"
    write_snapshot(tmp_path, path, MEMORIES, [memories(memory(project_id="kelp"))], {})
    assert SnapshotFile(path, MEMORIES).fingerprints == {}


@pytest.mark.parametrize("content", [None, b"", b"PAR1 and more", b"\0" * 99])
def test_a_missing_or_damaged_snapshot_holds_nothing(tmp_path, content):
    path = tmp_path / "memories.parquet"
    if content is not None:
        path.write_bytes(content)
    assert SnapshotFile(path, MEMORIES).fingerprints == {}


def test_a_snapshot_damaged_within_gives_no_rows(tmp_path):
    path = tmp_path / "memories.parquet"
    write_snapshot(
        tmp_path,
        path,
        MEMORIES,
        [memories(*(memory(f"k{at}", project_id="kelp") for at in range(99)))],
        MADE_OF,
    )
    snapshot, content = SnapshotFile(path, MEMORIES), path.read_bytes()
    with path.open("r+b") as file:  # the same file, which is open
        file.write(b"\xff" * (len(content) // 2))
    assert snapshot.rows_of("kelp") is None
