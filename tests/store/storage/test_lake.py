"""Claims about the lake: a commit is whole or not at all, newer sessions shadow older ones."""

import errno
import json
from pathlib import Path

import pytest

from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import Cursor, LakeFile, Manifest, Output
from cortex.transforms.errors import FileDamaged, SchemaMismatch, StoreNotWritable
from cortex.transforms.schemas import EVENTS, TURNS
from tests.rows import event, events, turn, turns


def commit_turns(lake: Lake, *rows: dict) -> None:
    with lake.change() as change:
        change.append(TURNS, "reef-1", turns(*rows))


def test_what_was_committed_is_read_by_a_lake_opened_later(home: Path):
    commit_turns(Lake(home), turn(1), turn(2))
    assert Lake(home).read(TURNS)["line"].to_pylist() == [1, 2]


def test_no_column_at_all_has_as_many_rows_from_the_disk_as_from_memory(home: Path):
    commit_turns(Lake(home), turn(1), turn(2))
    lake = Lake(home)
    from_disk = lake.read(TURNS, "reef-1", columns=[])
    assert (from_disk.num_rows, from_disk.column_names) == (2, [])
    lake.read(TURNS, "reef-1")
    assert lake.read(TURNS, "reef-1", columns=[]).equals(from_disk)


def test_a_change_that_fails_leaves_the_lake_as_it_was(home: Path):
    lake = Lake(home)
    commit_turns(lake, turn(1))
    with pytest.raises(RuntimeError), lake.change() as change:
        change.append(TURNS, "reef-1", turns(turn(2)))
        raise RuntimeError("killed")
    assert Lake(home).read(TURNS)["line"].to_pylist() == [1]


def test_what_a_newer_file_replaced_stays_until_swept_for_views_that_read_it(home: Path):
    lake = Lake(home)
    for text in ("old", "new"):
        with lake.change() as change:
            change.append(EVENTS, "reef-1", events(event(text)), sessions=("s1",))
    assert len(list(lake.root.rglob("*.parquet"))) == 2


def test_sweep_removes_what_no_commit_named(home: Path):
    lake = Lake(home)
    commit_turns(lake, turn(1))
    with pytest.raises(RuntimeError), lake.change() as change:
        change.append(TURNS, "reef-1", turns(turn(2)))
        raise RuntimeError("killed")
    assert Lake(home).sweep() == 1
    assert len(list(lake.root.rglob("*.parquet"))) == 1


def test_a_session_written_again_shadows_its_older_rows(home: Path):
    lake = Lake(home)
    for texts in (["old", "older"], ["new"]):
        with lake.change() as change:
            rows = events(*(event(text) for text in texts), event("other", session_id=f"s-{texts[0]}"))
            change.append(EVENTS, "reef-1", rows, sessions=("s1", f"s-{texts[0]}"))
    assert sorted(Lake(home).read(EVENTS)["text"].to_pylist()) == ["new", "other", "other"]


def test_a_file_whose_sessions_are_all_shadowed_is_removed(home: Path):
    lake = Lake(home)
    for text in ("old", "new"):
        with lake.change() as change:
            change.append(EVENTS, "reef-1", events(event(text)), sessions=("s1",))
    assert Lake(home).sweep() == 1
    assert len(list(lake.root.rglob("*.parquet"))) == 1
    assert Lake(home).read(EVENTS)["text"].to_pylist() == ["new"]


def test_a_session_without_events_any_more_hides_its_old_ones(home: Path):
    lake = Lake(home)
    for rows in (events(event("rewound")), EVENTS.empty()):
        with lake.change() as change:
            change.append(EVENTS, "reef-1", rows, sessions=("s1",))
    assert Lake(home).read(EVENTS).num_rows == 0


def test_reading_some_sessions_gives_only_their_newest_rows(home: Path):
    lake = Lake(home)
    for text in ("old", "new"):
        with lake.change() as change:
            rows = events(event(text), event(text + " too", session_id="s2"))
            change.append(EVENTS, "reef-1", rows, sessions=("s1", "s2"))
    assert Lake(home).read(EVENTS, sessions={"s2"})["text"].to_pylist() == ["new too"]


def test_an_older_file_that_lives_for_other_sessions_adds_nothing_to_one_written_again(home: Path):
    lake = Lake(home)
    with lake.change() as change:
        rows = events(event("old"), event("other", session_id="s2"))
        change.append(EVENTS, "reef-1", rows, sessions=("s1", "s2"))
    with lake.change() as change:
        change.append(EVENTS, "reef-1", events(event("new")), sessions=("s1",))
    assert Lake(home).read(EVENTS, sessions={"s1"})["text"].to_pylist() == ["new"]
    assert Lake(home).read(EVENTS, sessions=set()).num_rows == 0


def test_compaction_keeps_the_rows_and_leaves_one_file(home: Path):
    lake = Lake(home)
    for line in range(1, 20):
        commit_turns(lake, turn(line))
    before = sorted(lake.read(TURNS)["turn_id"].to_pylist())
    assert lake.crowded() == [(TURNS, "reef-1")]
    lake.compact(TURNS, "reef-1")
    assert sorted(Lake(home).read(TURNS)["turn_id"].to_pylist()) == before
    assert lake.sweep() == 19
    assert len(list(lake.root.rglob("*.parquet"))) == 1


def test_a_cursor_is_committed_with_the_rows_it_speaks_of(home: Path):
    lake = Lake(home)
    cursor = Cursor(10, 1, "abc", 10, "reef-1", None)
    with lake.change() as change:
        change.append(TURNS, "reef-1", turns(turn(1)))
        change.move_cursor("/t/s1.jsonl", cursor)
    assert Lake(home).manifest.cursors == {"/t/s1.jsonl": cursor}


def flipped(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << at % 8
    path.write_bytes(content)


@pytest.mark.parametrize("share", [0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_one_flipped_bit_anywhere_in_a_file_is_seen_before_a_row_of_it_is_used(home: Path, share: float):
    commit_turns(Lake(home), *(turn(line) for line in range(1, 50)))
    [path] = (home / "lake").rglob("*.parquet")
    flipped(path, int(share * path.stat().st_size))
    with pytest.raises(FileDamaged, match="not as it was written"):
        Lake(home).read(TURNS, columns=["line"])
    assert [file.path for file in Lake(home).damaged_files()] == [path.relative_to(home / "lake").as_posix()]


def test_a_large_lake_is_read_in_turns_until_each_file_was_looked_at(home: Path):
    lake = Lake(home)
    for line in range(1, 4):
        commit_turns(lake, turn(line))
    paths = sorted((home / "lake").rglob("*.parquet"))
    flipped(paths[1], 700)
    assert [len(lake.damaged_files(1, begin)) for begin in range(6)] == [0, 1, 0, 0, 1, 0]


def test_files_of_a_version_that_noted_no_digest_are_read_and_noted_with_the_next_commit(home: Path):
    commit_turns(Lake(home), turn(1))
    path = home / "runs" / "manifest.json"
    before = json.loads(path.read_bytes())
    digests = before.pop("digests")
    path.write_text(json.dumps(before))
    lake = Lake(home)
    assert (lake.read(TURNS).num_rows, lake.damaged_files()) == (1, [])
    lake.note(lake.notes.due_to_wipe(["reef-1"]))
    assert json.loads(path.read_bytes())["digests"] == digests and len(digests) == 1


def test_a_file_that_cannot_be_read_gets_no_digest(home: Path):
    commit_turns(Lake(home), turn(1))
    path = home / "runs" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "digests": {}}))
    [file] = (home / "lake").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    lake = Lake(home)
    lake.note(lake.notes.due_to_wipe(["reef-1"]))
    assert json.loads(path.read_bytes())["digests"] == {}


def test_rows_of_another_layout_are_refused_by_name(home: Path):
    with pytest.raises(SchemaMismatch, match=r"missing.*'block'"), Lake(home).change() as change:
        change.append(TURNS, "reef-1", turns(turn(1)).drop_columns(["block"]))


def test_a_full_disk_is_a_clear_error_and_loses_nothing(home: Path, monkeypatch: pytest.MonkeyPatch):
    lake = Lake(home)
    commit_turns(lake, turn(1))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(StoreNotWritable, match="no space is left"):
        commit_turns(lake, turn(2))
    assert Lake(home).read(TURNS)["line"].to_pylist() == [1]
    assert not list(home.rglob("*.part"))


def test_notes_of_one_block_are_committed_once_or_with_the_next_commit(home: Path):
    lake = Lake(home)
    with lake.gathering_notes():
        for scope in ("reef-1", "kiln-2"):
            lake.note_later(lake.notes.with_output(Output("link", scope), "f"))
        assert Lake(home).notes.outputs == {}
        commit_turns(lake, turn(1))
        assert Lake(home).notes.outputs == lake.notes.outputs
        lake.note_later(lake.notes.with_output(Output("decay", "reef-1"), "f"))
    assert Lake(home).notes == lake.notes
    assert len(lake.notes.outputs) == 3
    assert lake.manifest.generation == 2


def test_a_note_for_later_outside_of_a_block_is_committed_at_once(home: Path):
    lake = Lake(home)
    lake.note_later(lake.notes.with_output(Output("link", "reef-1"), "f"))
    assert Lake(home).notes.outputs == {Output("link", "reef-1"): "f"}


def test_files_of_a_partition_are_found_as_they_come_and_go():
    files = [LakeFile(f"turns/project={p}/{n}.parquet", "turns", p, 1, n) for n in (2, 1) for p in "ba"]
    manifest = Manifest(files={file.path: file for file in files})
    assert [f.generation for f in manifest.live("turns", "a")] == [1, 2]
    assert manifest.live("turns") == sorted(files, key=lambda f: (f.generation, f.path))
    copy = manifest.copy()
    del copy.files[files[0].path]
    assert [f.generation for f in copy.live("turns", "b")] == [1] and manifest.partitions("turns") == [
        "a",
        "b",
    ]
    copy.files[files[0].path] = files[0]
    assert copy.live("turns") == manifest.live("turns") and copy.live("events") == []


@pytest.mark.parametrize("version", [0, 9])
def test_a_store_of_another_version_is_refused_with_what_to_do(home: Path, version: int):
    commit_turns(Lake(home), turn(1))
    path = home / "runs" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"version": version}))
    with pytest.raises(SchemaMismatch, match=rf"version {version}.*Install the version"):
        Lake(home)
