"""Large batches are extracted by several processes: what comes out is the same, and none is left behind."""

from pathlib import Path

import pyarrow as pa
import pytest

from cortex.flows.reading import extract_pool
from cortex.flows.reading.duplicate_turns import in_first_place
from cortex.flows.reading.extract_pool import ExtractPool
from cortex.flows.reading.extraction import Extraction, by_session, extract_from
from cortex.storage.lake.lake import each_key_once
from cortex.storage.settings.reference import read_policy
from cortex.storage.store import Store
from cortex.transforms.extract.echoes import ShownLines
from cortex.transforms.extract.ground.settled import NOTHING_SETTLED
from cortex.transforms.schemas import EVENTS, TURNS
from tests.bench import Bench, contents, difference
from tests.transcripts import decisions, forked

POLICY = read_policy(None)


@pytest.fixture
def talked(bench: Bench) -> Bench:
    """Return a bench with the transcripts of two projects, one of them forked."""
    talk = decisions("s1")
    talk.write(bench.projects)
    forked(talk.records, "f4").assistant("[MEMORY: pattern] One queue a poller.").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    return bench


@pytest.fixture
def sessions(talked: Bench) -> list[Extraction]:
    """Return its sessions as the lake has them."""
    talked.begin()
    turns = Store(talked.home).lake.read(TURNS)
    return by_session(Extraction(turns, ShownLines(), NOTHING_SETTLED))


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_pool_gives_what_one_process_gives(talked, other, monkeypatch):
    talked.begin()
    monkeypatch.setattr(extract_pool, "BYTES_FOR_WORKERS", 0)
    monkeypatch.setattr(extract_pool, "cores", lambda: 2)
    other.begin()
    assert difference(contents(other.home), contents(talked.home)) == {}


def test_a_pool_answers_in_order_and_ends_its_processes(sessions):
    pool = ExtractPool(POLICY, 1)
    results = pool.extract(sessions * 3)
    [worker] = pool._workers
    pool.close()
    assert [result.events for result in results] == [extract_from(each, POLICY) for each in sessions * 3]
    assert not is_running(worker.pid)


def test_a_killed_worker_costs_nothing(sessions):
    pool = ExtractPool(POLICY, 1)
    [worker] = pool._workers
    worker.kill()
    results = pool.extract(sessions)
    pool.close()
    assert all(result.events is not None for result in results)
    assert not is_running(worker.pid)


def test_the_sessions_of_a_project_give_together_what_the_whole_gives(talked):
    talked.begin()
    lake = Store(talked.home).lake
    for project_id in lake.manifest.partitions(TURNS.name):
        known = lake.read(TURNS, project_id)
        whole = Extraction(in_first_place(known, known), ShownLines(), NOTHING_SETTLED)
        parts = [extract_from(each, POLICY) for each in by_session(whole)]
        assert each_key_once(EVENTS, pa.concat_tables(parts)).equals(extract_from(whole, POLICY))


def test_a_small_batch_starts_no_process():
    with extract_pool.pool_for(extract_pool.BYTES_FOR_WORKERS - 1, POLICY) as pool:
        assert pool is None
