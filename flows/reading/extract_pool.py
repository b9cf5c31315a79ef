"""Extraction in several processes: this one and, for a large batch, one more for each further core."""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread

from cortex.flows.reading.extraction import Extracted, Extraction, extract_or_fault
from cortex.transforms.policy import Policy

# Below this a process that imports and compiles for 2 s of processor time would come too late.
BYTES_FOR_WORKERS = 12 * 1024 * 1024
WORKERS_MAX = 7
# What a worker is given to end by itself, once its pipe is closed.
SECONDS_TO_END = 5


class ExtractPool:
    """Workers that wait for sessions; one that dies costs nothing, since its task is done here."""

    def __init__(self, policy: Policy, workers: int) -> None:
        """Start `workers` processes; they import and compile while this one goes on."""
        self._policy, self._pickled = policy, pickle.dumps(policy)
        self._workers = [_started() for _ in range(workers)]
        self._has_policy: set[int] = set()

    def extract(self, tasks: Sequence[Extraction]) -> list[Extracted]:
        """Return what each task gives, in their order, whoever does it."""
        done: dict[int, Extracted] = {}
        # The longest first: none of them is left for the end.
        waiting = deque(sorted(range(len(tasks)), key=lambda at: -tasks[at].turns.nbytes))
        threads = [
            Thread(target=self._ask, args=(worker, tasks, waiting, done), daemon=True)
            for worker in self._workers
        ]
        for thread in threads:
            thread.start()
        while len(done) < len(tasks):
            with suppress(IndexError):
                at = waiting.popleft()
                done[at] = extract_or_fault(tasks[at], self._policy)
                continue
            for thread in threads:
                thread.join()
            # What a worker took and did not give back is waiting again.
        return [done[at] for at in range(len(tasks))]

    def _ask(
        self,
        worker: "subprocess.Popen[bytes]",
        tasks: Sequence[Extraction],
        waiting: deque[int],
        done: dict[int, Extracted],
    ) -> None:
        with suppress(IndexError, OSError, EOFError, pickle.UnpicklingError):
            while worker.poll() is None:
                at = waiting.popleft()
                try:
                    done[at] = self._reply(worker, tasks[at])
                finally:
                    if at not in done:
                        waiting.append(at)
                        worker.kill()

    def _reply(self, worker: "subprocess.Popen[bytes]", task: Extraction) -> Extracted:
        assert worker.stdin is not None and worker.stdout is not None
        if worker.pid not in self._has_policy:
            self._has_policy.add(worker.pid)
            worker.stdin.write(self._pickled)
        pickle.dump(task, worker.stdin)
        worker.stdin.flush()
        reply = pickle.load(worker.stdout)
        assert isinstance(reply, Extracted)
        return reply

    def close(self) -> None:
        """End the workers and wait for them."""
        for worker in self._workers:
            with suppress(OSError):
                worker.communicate(timeout=SECONDS_TO_END)
        for worker in self._workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(SECONDS_TO_END)
                continue
            worker.kill()
            worker.wait()


@contextmanager
def pool_for(waiting_bytes: int, policy: Policy) -> Iterator[ExtractPool | None]:
    """Yield a pool for the length of a block where so many bytes are worth it, else None."""
    workers = min(cores() - 1, WORKERS_MAX) if waiting_bytes >= BYTES_FOR_WORKERS else 0
    if workers < 1:
        yield None
        return
    pool = ExtractPool(policy, workers)
    try:
        yield pool
    finally:
        pool.close()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started() -> "subprocess.Popen[bytes]":
    # A process of its own and no fork: the libraries of the tables run threads. It ends when its pipe does,
    # so that none is left where this one is killed. -P: nothing is imported of the folder the run stands in.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cortex.flows.reading.extract_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
