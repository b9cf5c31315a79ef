"""Processes of this machine that answer shards for a run; each is this module, by `python -m`."""

import importlib.util
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import IO, Literal

from cortex.flows.reading.shards import LENGTH_BYTES, answer_shard
from cortex.storage.filesystem.place import install_extra
from cortex.storage.settings.settings import WorkerSettings
from cortex.transforms.errors import RunnerMissing, UnknownValue, contained

# -- Which of Prefect's task runners spreads shards over workers, and whether its library is here.

Runner = Literal["none", "threads", "dask", "ray"]
NO_RUNNER: Runner = "none"
RUNNERS: tuple[Runner, ...] = ("none", "threads", "dask", "ray")
LIBRARIES = {"dask": "prefect_dask", "ray": "prefect_ray"}


@dataclass(frozen=True)
class RunnerChoice:
    """The runner of a run; how many workers it starts here, or the address of those that run already."""

    runner: Runner = NO_RUNNER
    workers: int = 1
    cluster: str = ""

    @property
    def is_on(self) -> bool:
        """Return whether others work in addition to the run."""
        return self.runner != NO_RUNNER


NO_WORKERS = RunnerChoice()


def runner_for(wanted: str | None, settings: WorkerSettings) -> RunnerChoice:
    """
    Return the runner that is wanted, or that of the settings.

    Raises UnknownValue for a name that is not one of RUNNERS, RunnerMissing if its library is not here.
    """
    name = wanted or settings.runner
    for runner in RUNNERS:
        if runner == name:
            _check_library(runner)
            return RunnerChoice(runner, settings.workers or cores(), settings.cluster)
    raise UnknownValue("runner", name, RUNNERS)


def _check_library(runner: Runner) -> None:
    library = LIBRARIES.get(runner)
    if library and importlib.util.find_spec(library) is None:
        raise RunnerMissing(
            f"the runner '{runner}' needs the library {library.replace('_', '-')}, which is not installed.",
            f"{install_extra(runner)}, or: cortex config set run.runner none",
        )


# Below this a process that imports and compiles for 2 s of processor time would come too late.
BYTES_FOR_WORKERS = 12 * 1024 * 1024
WORKERS_MAX = 7
# About half a second of work, so that no process waits long for another's last shard.
LOCAL_SHARD_BYTES = 4 * 1024 * 1024

_READY = b"+"


@dataclass(eq=False)
class _Asked:
    """A shard that was asked for; `answer` is None if nobody could give one."""

    request: bytes
    is_answered: bool = False
    answer: bytes | None = None


class LocalWorkers:
    """
    Workers of this machine, and the run's own process, which takes part while it waits for them.

    One that dies costs nothing: what it had begun is done by another, or by the run.
    """

    def __init__(self, workers: int) -> None:
        """Start `workers` processes; they import and compile while this one goes on."""
        self._changed, self._is_over = Condition(), False
        self._waiting: deque[_Asked] = deque()  # that nobody has begun
        self._workers = [_started() for _ in range(workers)]
        for worker in self._workers:
            Thread(target=self._serve, args=(worker,), daemon=True).start()

    def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
        """Yield the answer to each request, in their order; None if nobody has begun it yet."""
        asked: deque[_Asked] = deque()
        for request in requests:
            asked.append(_Asked(request))
            with self._changed:
                self._waiting.append(asked[-1])
                self._changed.notify_all()
            if len(asked) > 2 * len(self._workers):
                yield self._taken(asked.popleft())
        while asked:
            yield self._taken(asked.popleft())

    def close(self) -> None:
        """End the workers: they hold nothing that is not read again."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.kill()
            worker.wait()

    def _taken(self, first: _Asked) -> bytes | None:
        while True:
            with self._changed:
                if first in self._waiting:
                    self._waiting.remove(first)
                    return None
                if first.is_answered:
                    return first.answer
                if not self._waiting:
                    self._changed.wait()
                    continue
                last = self._waiting.pop()
            with contained(lambda _: None):  # where this fails the run finds out why
                last.answer = answer_shard(last.request)
            last.is_answered = True

    def _serve(self, worker: "subprocess.Popen[bytes]") -> None:
        """Let a worker answer one shard after another, until it ends or there are no more."""
        assert worker.stdin is not None and worker.stdout is not None
        with suppress(OSError):
            if worker.stdout.read(len(_READY)) != _READY:
                return
            while asked := self._next():
                answer = None
                try:
                    _write(worker.stdin, asked.request)
                    answer = _read(worker.stdout)
                finally:
                    with self._changed:
                        asked.answer, asked.is_answered = answer, answer is not None
                        if answer is None:
                            self._waiting.appendleft(asked)
                        self._changed.notify_all()
                if answer is None:
                    return

    def _next(self) -> _Asked | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            return None if self._is_over else self._waiting.popleft()


@contextmanager
def local_workers(waiting_bytes: int) -> Iterator[LocalWorkers | None]:
    """Yield workers for the length of a block where so many bytes are worth them, else None."""
    count = min(cores() - 1, WORKERS_MAX) if waiting_bytes >= BYTES_FOR_WORKERS else 0
    if count < 1:
        yield None
        return
    workers = LocalWorkers(count)
    try:
        yield workers
    finally:
        workers.close()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started() -> "subprocess.Popen[bytes]":
    # A process of its own and no fork: the libraries of the tables run threads. It ends when its pipe does,
    # so that none is left where this one is killed. -P: nothing is imported of the folder the run stands in.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cortex.flows.reading.shard_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes | None:
    """Return what was written to the other end; None if that has ended."""
    length = pipe.read(LENGTH_BYTES)
    data = pipe.read(int.from_bytes(length, "big"))
    return data if len(length) == LENGTH_BYTES and len(data) == int.from_bytes(length, "big") else None


def main() -> None:
    """Serve the process that started this one; nothing else may write to its pipe."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    replies.write(_READY)
    replies.flush()
    while request := _read(sys.stdin.buffer):
        _write(replies, answer_shard(request))


if __name__ == "__main__":
    main()
