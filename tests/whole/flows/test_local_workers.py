"""Much that waits is read by several processes: what comes out is the same, and none is left behind."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cortex.flows import extract_transcripts
from cortex.flows.reading import shard_worker
from cortex.flows.reading.shard_worker import LocalWorkers
from cortex.flows.reading.shards import (
    Extraction,
    TextShard,
    TranscriptAnswer,
    TranscriptShard,
    Unread,
    by_session,
    extract_from,
    packed,
    unpacked,
)
from cortex.flows.reading.transcript_reader import in_first_place
from cortex.storage.lake.lake import each_key_once
from cortex.storage.settings.reference import read_policy
from cortex.storage.staging.transcripts import START
from cortex.storage.store import Store
from cortex.transforms.extract.language.settled import NOTHING_SETTLED
from cortex.transforms.extract.quotes import ShownLines
from cortex.transforms.schemas import EVENTS, TURNS
from cortex.transforms.transcripts.records import Limits
from cortex.transforms.transcripts.transcript import Source
from tests.bench import Bench, contents, difference
from tests.transcripts import decisions, forked

POLICY = read_policy(None)
EMPTY = packed(TranscriptShard((), {}, {}, POLICY))


@pytest.fixture
def talked(bench: Bench) -> Bench:
    """Return a bench with the transcripts of two projects, one of them forked."""
    talk = decisions("s1")
    talk.write(bench.projects)
    forked(talk.records, "f4").assistant("[MEMORY: pattern] One queue a poller.").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    return bench


@pytest.fixture
def workers() -> Iterator[LocalWorkers]:
    workers = LocalWorkers(1)
    yield workers
    workers.close()
    assert not any(Path(f"/proc/{worker.pid}").exists() for worker in workers._workers)


def test_several_processes_give_what_one_gives(talked, other, monkeypatch):
    talked.begin()
    monkeypatch.setattr(shard_worker, "BYTES_FOR_WORKERS", 0)
    monkeypatch.setattr(shard_worker, "cores", lambda: 2)
    monkeypatch.setattr(extract_transcripts, "LOCAL_SHARD_BYTES", 0)  # each session is a shard
    other.begin()
    assert difference(contents(other.home), contents(talked.home)) == {}


def shard_of(path: Path) -> bytes:
    unread = Unread(path, path, Source(path.name, "kelp-1", None, None), START, Limits())
    return packed(TranscriptShard((unread,), {}, {}, POLICY))


def test_answers_come_in_order_and_the_run_takes_part_until_a_worker_is_up(talked, workers, monkeypatch):
    monkeypatch.setattr(shard_worker, "answer_shard", lambda request: b"by the run")
    paths = sorted(talked.projects.rglob("*.jsonl"))
    asked: list[Path] = []
    by_worker = 0

    def requests() -> Iterator[bytes]:
        until = time.monotonic() + 120
        while by_worker < 9 and time.monotonic() < until:
            asked.append(paths[len(asked) % len(paths)])
            yield shard_of(asked[-1])

    for number, answer in enumerate(workers.map(requests())):
        if answer not in (None, b"by the run"):
            reading = unpacked(answer)
            assert isinstance(reading, TranscriptAnswer) and list(reading.readings) == [asked[number]]
            by_worker += 1
        else:
            assert number or answer is None, "the worker still starts: the run does not wait for it"
            time.sleep(0.01)
    assert by_worker >= 9


def test_what_a_dead_worker_would_have_done_the_run_does(workers):
    workers._workers[0].kill()
    assert list(workers.map([EMPTY] * 3)) == [None] * 3


def test_a_shard_on_which_a_worker_dies_stops_nothing(workers):
    of_another_model = packed(TextShard("of tomorrow", (("a text",),)))
    answers = list(workers.map([of_another_model] * 30))
    assert answers == [None] * 30


def test_the_sessions_of_a_project_give_together_what_the_whole_gives(talked):
    talked.begin()
    lake = Store(talked.home).lake
    for project_id in lake.manifest.partitions(TURNS.name):
        known = lake.read(TURNS, project_id)
        whole = Extraction(in_first_place(known, known), ShownLines(), NOTHING_SETTLED)
        parts = [extract_from(each, POLICY) for each in by_session(whole)]
        assert each_key_once(EVENTS, pa.concat_tables(parts)).equals(extract_from(whole, POLICY))


def test_for_little_no_process_is_started():
    with shard_worker.local_workers(shard_worker.BYTES_FOR_WORKERS - 1) as workers:
        assert workers is None
