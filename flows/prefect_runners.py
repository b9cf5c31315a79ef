"""Workers under Prefect: each shard is a task of the flow run, on threads, a Dask cluster or Ray."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from cortex.flows.run import Run
from cortex.flows.runner_choice import RunnerChoice
from cortex.flows.shards import answer_shard

# Beside "cortex", so that a limit on the server can hold for shards alone.
SHARD_TAGS = ["cortex", "cortex-shard"]
SHARD_RETRIES = 2
SHARD_RETRY_SECONDS = 1
# Shards that wait beside those in work: no worker stands still while the run commits.
AHEAD = 2
# A cluster that somebody else runs may have any number of workers.
CLUSTER_AHEAD = 64


@task(
    name="cortex-shard",
    tags=SHARD_TAGS,
    retries=SHARD_RETRIES,
    retry_delay_seconds=SHARD_RETRY_SECONDS,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def shard_task(request: bytes) -> bytes:
    """Answer a shard of transcripts or texts; see `cortex.flows.shards`."""
    return answer_shard(request)


class PrefectCarrier:
    """Answers shards as tasks of the flow run; its workers start with the first of them."""

    def __init__(self, choice: RunnerChoice) -> None:
        self._choice, self._stack = choice, ExitStack()
        # Of the flow run: within a stage the context holds that stage's run, which no process can be sent.
        self._context = copy_context()
        self._ahead = CLUSTER_AHEAD if choice.cluster else choice.workers + AHEAD
        self._runner: TaskRunner[Any] | None = None
        self.notes: list[str] = []
        self.shards = self.unanswered = 0

    def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
        """Yield the answer to each request, in their order; None where no worker gave one."""
        waiting: deque[Any] = deque()
        for request in requests:
            waiting.append(self._submitted(request))
            if len(waiting) > self._ahead:
                yield self._answer(waiting.popleft())
        while waiting:
            yield self._answer(waiting.popleft())

    def close(self) -> None:
        """End the workers that were started for this run; say how many shards the run did itself."""
        self._context.run(self._stack.close)
        if self.unanswered:
            self.notes.append(
                f"{self.unanswered} of {self.shards} shards got no answer from a worker: this run did them."
            )

    def _submitted(self, request: bytes) -> Any:
        try:
            return self._context.run(self._submit, request)
        except Exception as error:  # noqa: BLE001 (a cluster's own errors share no base class)
            self._note(error)
            return None

    def _answer(self, future: Any) -> bytes | None:
        self.shards += 1
        try:
            if future is not None:
                answer: bytes = future.result()
                return answer
        except Exception as error:  # noqa: BLE001 (nor do those of its workers)
            self._note(error)
        self.unanswered += 1
        return None

    def _submit(self, request: bytes) -> Any:
        return self._started().submit(shard_task, {"request": request})

    def _started(self) -> TaskRunner[Any]:
        if self._runner is None:
            self._stack.enter_context(_known_server())
            self._runner = self._stack.enter_context(_runner_of(self._choice))
        return self._runner

    def _note(self, error: Exception) -> None:
        lines = str(error).splitlines()
        note = f"{self._choice.runner}: {type(error).__name__} {lines[0] if lines else ''}"[:160].rstrip()
        if note not in self.notes:
            self.notes.append(note)


@contextmanager
def carrying(run: Run) -> Iterator[None]:
    """Give the run workers for the length of a block, where its settings or parameters name some."""
    if not run.runner.is_on:
        yield
        return
    carrier = PrefectCarrier(run.runner)
    run.carrier = carrier
    try:
        yield
    finally:
        run.carrier = None
        with suppress(Exception):  # what a cluster says when it ends changes nothing that was committed
            carrier.close()
        for note in carrier.notes:
            run.report.note(note)


@contextmanager
def _known_server() -> Iterator[None]:
    """Let workers report to the server of this run: each would start a temporary one of its own."""
    with get_client(sync_client=True) as client:
        address = str(client.api_url)
    with temporary_settings({PREFECT_API_URL: address}):
        yield


def _runner_of(choice: RunnerChoice) -> TaskRunner[Any]:
    makers: dict[str, Callable[[RunnerChoice], TaskRunner[Any]]] = {
        "threads": lambda choice: ThreadPoolTaskRunner(max_workers=choice.workers),
        "dask": _dask,
        "ray": _ray,
    }
    return makers[choice.runner](choice)


def _dask(choice: RunnerChoice) -> TaskRunner[Any]:
    from prefect_dask.task_runners import DaskTaskRunner

    if choice.cluster:
        return DaskTaskRunner(address=choice.cluster)
    logging.getLogger("distributed").setLevel(logging.ERROR)  # a worker that died is noted by the run
    # By default its status is open to the network, and what does not fit in memory goes to a scratch folder.
    options = {"dashboard_address": "127.0.0.1:0", "memory_limit": 0, "host": "127.0.0.1"}
    return DaskTaskRunner(cluster_kwargs={"n_workers": choice.workers, "threads_per_worker": 1, **options})


def _ray(choice: RunnerChoice) -> TaskRunner[Any]:
    # It reports its use to its makers unless this is set before it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from prefect_ray.task_runners import RayTaskRunner

    options = {"num_cpus": choice.workers, "include_dashboard": False}
    runner: TaskRunner[Any] = RayTaskRunner(choice.cluster or None, {} if choice.cluster else options)
    return runner
