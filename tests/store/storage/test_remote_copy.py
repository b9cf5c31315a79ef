"""Two machines on one store elsewhere: each works on a copy, and what either commits is in the other."""

import os
from pathlib import Path

import pytest

from cortex.storage.filesystem.place import (
    begin_copy,
    check_uri,
    remote_note,
    store_home,
)
from cortex.storage.lake.lake import Lake
from cortex.storage.remote import commit_log as remote_lease
from cortex.storage.remote import commit_log as remote_log
from cortex.storage.remote.bucket import BucketLog, FolderBucket, bucket_at
from cortex.storage.remote.file_tree import (
    Stored,
    object_name,
    parse_tree,
    serialize_tree,
    term_of,
)
from cortex.storage.remote.store_copy import refresh
from cortex.storage.remote.store_lease import lease
from cortex.transforms.errors import (
    FileDamaged,
    LakeUnclear,
    LeaseLost,
    ManifestDamaged,
    StoreNotWritable,
    StoreUnreachable,
    UsageError,
)
from cortex.transforms.schemas import VECTORS
from tests.examples import cases

MODEL = "m"
WRITTEN = [f"{number:02}" for number in range(10)]


@pytest.fixture
def bucket(tmp_path):
    return tmp_path / "bucket"


@pytest.fixture
def machines(tmp_path, bucket):
    for name in ("one", "two"):
        begin_copy(tmp_path / name, f"file://{bucket}")
    return tmp_path / "one", tmp_path / "two"


def vectors(*names: str):
    return VECTORS.of([{"model": MODEL, "content_hash": name, "vector": [1.0, 0.0]} for name in names])


def write(home: Path, *names: str) -> None:
    with lease(home):
        write_held(home, *names)


def write_held(home: Path, *names: str) -> None:
    with Lake(home).change() as change:
        change.append(VECTORS, MODEL, vectors(*names))


def names_in(home: Path) -> list[str]:
    return sorted(Lake(home).read(VECTORS)["content_hash"].to_pylist())


def objects(bucket: Path, kind: str = "") -> set[str]:
    return {str(path.relative_to(bucket)) for path in (bucket / kind).rglob("*") if path.is_file()}


def test_what_one_commits_the_other_reads_and_goes_on_from(machines):
    one, two = machines
    write(one, "a")
    write(two, "b")
    write(one, "c")
    assert names_in(one) == ["a", "b", "c"]
    refresh(two)
    assert names_in(two) == ["a", "b", "c"]
    Lake(two).check_belongs()


def test_folders_are_shared_but_for_what_is_each_machines_own(machines, bucket):
    one, two = machines
    for name in ("published/kiln/brief.md", "published/memory.duckdb", "config.toml", "staging/new/ticket"):
        (one / name).parent.mkdir(parents=True, exist_ok=True)
        (one / name).write_text("words")
    write(one, "a")
    write(two, "b")
    assert (two / "published/kiln/brief.md").read_text() == "words"
    assert not (two / "published/memory.duckdb").exists()
    assert {name.partition("/")[0] for name in objects(bucket)} == {
        "lake",
        "log",
        "published",
        "runs",
        "trees",
    }


def test_one_that_stood_still_is_refused_and_goes_on_from_the_other(machines, monkeypatch):
    one, two = machines
    monkeypatch.setattr(remote_lease, "LEASE_SECONDS", 0.1)
    with pytest.raises(LeaseLost), lease(one), Lake(one).change() as change:
        change.append(VECTORS, MODEL, vectors("stale"))
        write(two, "b")
    write(one, "c")
    refresh(two)
    assert names_in(one) == names_in(two) == ["b", "c"]
    for home in machines:
        Lake(home).check_belongs()


def test_a_killed_commit_leaves_nothing_that_counts(machines, bucket, monkeypatch):
    one, two = machines
    write(one, "a")
    monkeypatch.setattr(FolderBucket, "create", killed)
    with pytest.raises(KeyboardInterrupt):
        write(one, "b")
    monkeypatch.undo()
    write(one, "c")
    write(two, "d")
    assert names_in(two) == ["a", "c", "d"]
    Lake(one).check_belongs()


def killed(*_: object) -> bool:
    raise KeyboardInterrupt


def test_what_no_state_names_is_removed_and_what_is_foreign_stays(machines, bucket):
    one, _ = machines
    write(one, "secret")
    (bucket / "lake").joinpath("notes.txt").write_text("somebody's")
    (bucket / "lake" / "vectors").joinpath(f"x.9999-{'0' * 32}.parquet").write_text("a later holder's")
    before = objects(bucket, "lake")
    with lease(one):
        lake = Lake(one)
        with lake.change() as change:
            change.replace(VECTORS, MODEL, vectors("kept"))
        lake.sweep()
    gone = before - objects(bucket, "lake")
    assert [name.startswith("lake/vectors/model=m/00000001-") for name in gone] == [True]
    assert len(objects(bucket, "trees")) == 1


def test_where_nothing_answers_what_is_here_is_read_and_nothing_written(machines, bucket):
    one, _ = machines
    write(one, "a")
    bucket.rename(bucket.with_name("away"))
    bucket.write_text("no folder")
    with pytest.raises(StoreUnreachable):
        write(one, "b")
    refresh(one)
    assert names_in(one) == ["a"]


def test_another_store_in_the_same_place_is_not_taken_for_this_one(machines, bucket, tmp_path):
    one, two = machines
    write(one, "a")
    bucket.rename(bucket.with_name("away"))
    with pytest.raises(LakeUnclear, match="is empty now"):
        write(one, "b")
    write(two, "other")
    with pytest.raises(LakeUnclear, match="another store"):
        write(one, "b")
    assert names_in(one) == ["a"]


def test_a_store_of_its_own_moves_to_an_empty_place_and_to_no_other(machines, tmp_path):
    one, two = machines
    own, other = tmp_path / "own", tmp_path / "other"
    for home in (own, other):
        write(home, home.name)
        begin_copy(home, remote_note(one).uri)
    with lease(own):
        pass
    refresh(two)
    assert names_in(two) == ["own"]
    with pytest.raises(LakeUnclear, match="a store of its own"), lease(other):
        pass
    assert names_in(other) == ["other"]


def test_a_changed_object_is_refused(machines, bucket):
    one, two = machines
    write(one, "a")
    name = next(name for name in objects(bucket, "lake"))
    (bucket / name).write_bytes((bucket / name).read_bytes()[:-1] + b"x")
    with pytest.raises(FileDamaged):
        refresh(two)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\xff", b'{"kind": "com', b'{"kind": 1}', b"[" * 100_000],
    ids=["empty", "a list", "no text", "cut", "other fields", "nested"],
)
def test_an_entry_of_the_log_that_was_cut_or_changed_is_refused_and_costs_nothing(machines, bucket, content):
    one, two = machines
    write(one, "a")
    last = max((bucket / "log").iterdir())
    sound = last.read_bytes()
    last.write_bytes(content)
    for ask in (refresh, lambda home: write(home, "b")):
        with pytest.raises(ManifestDamaged, match="an entry in the log"):
            ask(two)
    last.write_bytes(sound)
    write(two, "b")
    assert names_in(two) == ["a", "b"]


@cases(
    "path",
    ["../x", "/etc/x", "published/../../x", "published/memory.duckdb", "config.toml", "lake/x", "tables/a\n"],
)
def test_a_state_names_nothing_outside_what_is_shared(path):
    stored = Stored(object_name("lake/x.parquet", 1, "0" * 32), 1, "0" * 32)
    with pytest.raises(ManifestDamaged):
        parse_tree(serialize_tree({path: stored}), "trees/x")


def test_an_object_says_which_term_wrote_it():
    assert term_of(object_name("tables/a.lance/_versions/1.manifest", 12, "ab" * 16)) == 12
    assert term_of("tables/a.lance/data/notes") is None


@pytest.mark.parametrize(
    "named", ["gs://bucket/x", "s3://", "s3://bucket/../x", "s3://a+b", "file://relative"]
)
def test_what_is_no_place_of_a_store_is_refused(named, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CORTEX_HOME", named)
    with pytest.raises(UsageError):
        store_home()
    assert not list(tmp_path.iterdir())


def test_a_uri_means_the_copy_below_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CORTEX_HOME", "s3://bucket/team")
    assert store_home() == tmp_path / ".cortex-remote" / "s3+bucket+team"
    assert remote_note(store_home()).uri == "s3://bucket/team"
    check_uri(os.environ["CORTEX_HOME"])


def test_an_object_is_created_once(tmp_path):
    folder = bucket_at(f"file://{tmp_path}")
    assert folder.create("log/1", b"first")
    assert not folder.create("log/1", b"second")
    assert (folder.read("log/1"), folder.read("log/2")) == (b"first", None)


def test_a_full_disk_here_is_not_taken_for_a_place_that_does_not_answer(machines, bucket, monkeypatch):
    one, two = machines
    write(one, "a")
    monkeypatch.setattr(Path, "open", full_below(two))
    refresh(two)
    assert names_in(two) == [], "readers go on with what there is"
    with pytest.raises(StoreNotWritable, match="no space"):
        write(two, "b")
    monkeypatch.undo()
    write(two, "b")
    assert names_in(two) == ["a", "b"]


def full_below(folder: Path):
    """Return what opens files as ever, but below `folder` the device that is always full."""
    real = Path.open

    def opened(path, mode="r", *rest, **options):
        is_full = "w" in mode and path.is_relative_to(folder)
        return real(Path("/dev/full") if is_full else path, mode, *rest, **options)

    return opened


def test_what_a_killed_writer_left_in_a_shared_folder_is_removed_with_its_term(machines, bucket, monkeypatch):
    one, _ = machines
    write(one, "a")
    real = Path.replace

    def dies(path, target):
        if path.is_relative_to(bucket / "lake"):
            raise KeyboardInterrupt
        return real(path, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), lease(one):
        patch.setattr(Path, "replace", dies)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        write_held(one, "b")
    assert [name for name in objects(bucket, "lake") if name.endswith(".part")]
    write(one, "c")
    assert not [name for name in objects(bucket) if name.endswith(".part")]


def test_the_log_stays_short_also_after_a_kill_and_who_was_away_catches_up(machines, bucket, monkeypatch):
    one, two = machines
    monkeypatch.setattr(remote_log, "SPAN", 4)
    write(two, "first")
    waiting = list(WRITTEN)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(BucketLog, "trim", killed)
        while waiting:
            write(one, waiting.pop())
    while waiting:
        write(one, waiting.pop())
    numbers = sorted(int(name[4:14]) for name in objects(bucket, "log"))
    last = numbers[-1]
    assert numbers == [n for n in range(1, last + 1) if not remote_log.is_removable(n, last)]
    assert last > 30 and len(numbers) < 20
    refresh(two)
    assert names_in(two) == [*WRITTEN, "first"]
    write(two, "back")
    refresh(one)
    assert names_in(one) == [*WRITTEN, "back", "first"]
