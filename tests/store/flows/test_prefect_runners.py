"""A carrier of shards: what it answers where the workers of a cluster are gone, come back or never came."""

import importlib
from contextlib import nullcontext

import pytest

from cortex.flows.reading.shard_worker import RunnerChoice

REQUESTS = [b"a", b"b", b"c"]


class Task:
    """The future of a task: it gives `value` at the look of that number, before it is not there yet."""

    def __init__(self, value: object = None, looks: float = 1) -> None:
        self.value, self.looks = value, looks

    def result(self, timeout: float | None = None, raise_on_failure: bool = True) -> object:
        assert timeout is not None and not raise_on_failure
        self.looks -= 1
        if self.looks > 0:
            raise TimeoutError
        return self.value


class Cluster:
    """A runner whose tasks are given, and how many looks find a worker there."""

    def __init__(self, *tasks: Task, has_workers: tuple[bool, ...] = ()) -> None:
        self.tasks, self.has_workers, self.submitted, self.is_up = [*tasks], [*has_workers], 0, False

    def __enter__(self) -> "Cluster":
        self.is_up = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_up = False

    def submit(self, *_: object) -> Task:
        self.submitted += 1
        return self.tasks.pop(0)


@pytest.fixture
def prefect_stages():
    """Return the module, which takes 2.5 s to import: in the process that runs these tests alone."""
    return importlib.import_module("cortex.flows.engines.prefect_stages")


@pytest.fixture
def carried(monkeypatch, prefect_stages):
    """Return the answers of a carrier over a cluster; a second passes between two looks."""

    def answers(cluster: Cluster, patience: float = 3) -> tuple[list[bytes | None], list[str]]:
        seconds = iter(range(1_000))
        monkeypatch.setattr(prefect_stages, "_known_server", nullcontext)
        monkeypatch.setattr(prefect_stages, "_runner_of", lambda choice: cluster)
        monkeypatch.setattr(prefect_stages, "_has_workers", lambda *_: cluster.has_workers.pop(0))
        monkeypatch.setattr(prefect_stages, "monotonic", lambda: next(seconds))
        carrier = prefect_stages.PrefectCarrier(RunnerChoice("threads", 1), patience)
        given = list(carrier.map(REQUESTS))
        carrier.close()
        return given, carrier.notes

    return answers


def test_a_cluster_without_workers_is_waited_for_so_long_and_no_longer(carried):
    cluster = Cluster(Task(b"A"), Task(looks=float("inf")), Task(b"C"), has_workers=(False,) * 4)
    answers, notes = carried(cluster)
    assert answers == [b"A", None, None]
    assert notes[0] == "threads: NoWorkersLeft there was no worker for 3 s"
    assert "2 of 3" in notes[1]
    assert not cluster.is_up and cluster.has_workers == []


def test_workers_that_come_back_are_waited_for_again(carried):
    looks = (False, False, False, True, False, False, False)
    cluster = Cluster(Task(b"A", 8), Task(b"B"), Task(b"C"), has_workers=looks)
    assert carried(cluster) == ([b"A", b"B", b"C"], [])


def test_a_timeout_that_a_worker_met_is_not_taken_for_an_answer_that_is_awaited(carried):
    cluster = Cluster(Task(TimeoutError("of the disk")), Task(b"B"), Task(b"C"))
    answers, notes = carried(cluster)
    assert answers == [None, b"B", b"C"]
    assert notes[0] == "threads: TimeoutError of the disk"


def test_a_lost_cluster_is_noted_once_and_not_for_each_shard(carried):
    cluster = Cluster(*(Task(RuntimeError(f"{request!r} is lost")) for request in REQUESTS))
    answers, notes = carried(cluster)
    assert answers == [None] * 3
    assert notes[0] == "threads: RuntimeError b'a' is lost"
    assert [note for note in notes if "b'b'" in note or "b'c'" in note] == []


def test_a_cluster_that_does_not_start_is_tried_so_often_and_no_more(carried, prefect_stages, monkeypatch):
    class Broken(Cluster):
        attempts = 0

        def __enter__(self) -> "Cluster":
            self.attempts += 1
            raise OSError("no such host")

    monkeypatch.setattr(f"{__name__}.REQUESTS", [b"a"] * (prefect_stages.START_ATTEMPTS + 3))
    cluster = Broken()
    answers, notes = carried(cluster)
    assert answers == [None] * len(REQUESTS)
    assert cluster.attempts == prefect_stages.START_ATTEMPTS
    assert notes[0] == "threads: OSError no such host"
