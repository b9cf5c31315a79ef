"""The same on a bucket behind the protocol of S3, served on this machine."""

import threading

import pytest

from benchmarks.two_writers import URI, served_bucket
from cortex.storage.filesystem.place import begin_copy
from cortex.storage.lake.lake import Lake
from cortex.storage.remote.bucket import BucketLog, bucket_at
from cortex.storage.remote.commit_log import TAKE, LogEntry, append
from cortex.storage.remote.store_copy import refresh
from cortex.storage.remote.store_lease import lease
from cortex.transforms.errors import StoreUnreachable
from cortex.transforms.schemas import VECTORS


@pytest.fixture
def bucket(monkeypatch):
    with served_bucket() as surroundings:
        for name, value in surroundings.items():
            monkeypatch.setenv(name, value)
        yield bucket_at(URI)


def test_of_many_who_create_one_object_one_does(bucket):
    log, winners = BucketLog(bucket), list[int]()

    def create(writer: int) -> None:
        for number in range(30):  # by way of `append`: the client repeats a put that was not answered
            if append(log, number, LogEntry(TAKE, str(writer), number, "", str(writer))):
                winners.append(number)

    threads = [threading.Thread(target=create, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == list(range(30))


def test_objects_are_written_read_listed_and_removed(bucket, tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 6_000_000)
    bucket.put("lake/a", tmp_path / "a")
    bucket.put("lake/b", b"b")
    assert bucket.fetch("lake/a", tmp_path / "back", 6_000_000) and not bucket.fetch(
        "lake/c", tmp_path / "c", 9
    )
    assert (tmp_path / "back").read_bytes() == (tmp_path / "a").read_bytes()
    assert (bucket.read("lake/b"), bucket.read("lake/c")) == (b"b", None)
    bucket.remove(["lake/a", "lake/gone"])
    assert list(bucket.names("lake/")) == ["lake/b"]


def test_two_machines_go_on_from_each_other(bucket, tmp_path):
    for turn, name in enumerate(("one", "two", "one")):
        home = tmp_path / name
        begin_copy(home, URI)
        row = {"model": "m", "content_hash": str(turn), "vector": [1.0]}
        with lease(home), Lake(home).change() as change:
            change.append(VECTORS, "m", VECTORS.of([row]))
    refresh(tmp_path / "two")
    assert sorted(Lake(tmp_path / "two").read(VECTORS)["content_hash"].to_pylist()) == ["0", "1", "2"]


def test_a_wrong_bucket_is_a_clear_error(bucket, tmp_path):
    begin_copy(tmp_path / "home", "s3://cortex-no-such-bucket/team")
    with pytest.raises(StoreUnreachable, match="s3://cortex-no-such-bucket/team"), lease(tmp_path / "home"):
        pass
