"""
A flow's stages as Prefect knows them, and its workers: shards as tasks on threads, a Dask cluster or Ray.

The plain engine imports neither this nor Prefect.
"""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from time import monotonic
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from cortex.flows.reading.shard_worker import RunnerChoice
from cortex.flows.reading.shards import answer_shard
from cortex.flows.run.run import Run
from cortex.storage.published.reports import reports_folder
from cortex.transforms.errors import CortexError
from cortex.transforms.words.ages import counted

# Beside "cortex", so that a limit on the server can hold for shards alone.
SHARD_TAGS = ["cortex", "cortex-shard"]
SHARD_RETRIES = 2
SHARD_RETRY_SECONDS = 1
# Shards that wait in addition to those in work, so that no worker is idle while the run commits.
AHEAD = 2
# A cluster that somebody else runs may have any number of workers.
CLUSTER_AHEAD = 64
# Between two looks at whether there are workers: a question to the scheduler costs it nothing.
ROLL_CALL_SECONDS = 2.0
# A scheduler that has not said in that time which workers it has is counted as one that has none.
SCHEDULER_REPLY_SECONDS = 10.0
LOST_WORKER_TIMEOUT = "1 day"
# A worker that is killed while a local cluster starts keeps it from starting: then it is started again.
START_ATTEMPTS = 3


@task(
    name="cortex-shard",
    tags=SHARD_TAGS,
    retries=SHARD_RETRIES,
    retry_delay_seconds=SHARD_RETRY_SECONDS,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def shard_task(request: bytes) -> bytes:
    """Answer a shard of transcripts or texts; see `cortex.flows.reading.shards`."""
    return answer_shard(request)


class NoWorkersLeft(Exception):
    """There has been no worker for so long that none is waited for any more."""


class PrefectCarrier:
    """
    Answers shards as tasks of the flow run; its workers start with the first of them.

    Where they do not start, or none was left for `patience` seconds, all that is still asked has no answer.
    """

    def __init__(self, choice: RunnerChoice, patience: float) -> None:
        self._choice, self._patience, self._stack = choice, patience, ExitStack()
        # Of the flow run: within a stage the context holds that stage's run, which no process can be sent.
        self._context = copy_context()
        self._ahead = CLUSTER_AHEAD if choice.cluster else choice.workers + AHEAD
        self._runner: TaskRunner[Any] | None = None
        self._attempts_left = START_ATTEMPTS
        self._without_workers_since: float | None = None
        self._has_given_up = False
        self.notes: list[str] = []
        self.shards = self.unanswered = 0

    def map(self, requests: Iterable[bytes]) -> Iterator[bytes | None]:
        """Yield the answer to each request, in their order; None if no worker gave one."""
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
        if self._has_given_up:
            return None
        try:
            return self._context.run(self._submit, request)
        except Exception as error:  # noqa: BLE001 (a cluster's own errors share no base class)
            self._note(error)
            return None

    def _answer(self, future: Any) -> bytes | None:
        self.shards += 1
        try:
            if future is not None and not self._has_given_up:
                return self._awaited(future)
        except Exception as error:  # noqa: BLE001 (nor do those of its workers)
            self._note(error)
        self.unanswered += 1
        return None

    def _awaited(self, future: Any) -> bytes:
        """Return the answer when it is there. Raises what the worker met, or NoWorkersLeft."""
        while True:
            try:
                # What a worker met is returned, so that its own timeout is not taken for ours.
                answer = future.result(timeout=ROLL_CALL_SECONDS, raise_on_failure=False)
            except TimeoutError:
                self._look_for_workers()
                continue
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, bytes)
            return answer

    def _look_for_workers(self) -> None:
        """Raise NoWorkersLeft if there were none at each look for as long as is waited."""
        if self._runner is not None and _has_workers(self._choice, self._runner):
            self._without_workers_since = None
            return
        now = monotonic()
        if self._without_workers_since is None:
            self._without_workers_since = now
        if now - self._without_workers_since >= self._patience:
            self._has_given_up = True
            raise NoWorkersLeft(f"there was no worker for {self._patience:.0f} s")

    def _submit(self, request: bytes) -> Any:
        return self._started().submit(shard_task, {"request": request})

    def _started(self) -> TaskRunner[Any]:
        if self._runner is None:
            self._attempts_left -= 1
            self._has_given_up = self._attempts_left == 0
            with ExitStack() as starting:
                starting.enter_context(_known_server())
                runner = starting.enter_context(_runner_of(self._choice))
                if self._choice.runner == "dask":
                    _has_dask_workers(runner)  # it starts its cluster when that is first asked for
                self._stack = starting.pop_all()
            self._runner, self._has_given_up = runner, False
        return self._runner

    def _note(self, error: Exception) -> None:
        lines, kind = str(error).splitlines(), f"{self._choice.runner}: {type(error).__name__} "
        # Of each kind the first: a lost cluster names every shard in an error of its own.
        if not any(f"{note} ".startswith(kind) for note in self.notes):
            self.notes.append(f"{kind}{lines[0] if lines else ''}"[:160].rstrip())


@contextmanager
def carrying(run: Run) -> Iterator[None]:
    """Give the run workers for the length of a block, where its settings or parameters name some."""
    if not run.runner.is_on:
        yield
        return
    carrier = PrefectCarrier(run.runner, run.policy.threshold("worker_patience_seconds"))
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
    import dask
    from prefect_dask.task_runners import DaskTaskRunner

    if choice.cluster:
        return DaskTaskRunner(address=choice.cluster)
    logging.getLogger("distributed").setLevel(logging.ERROR)  # a worker that died is noted by the run
    # A worker that died is started again; one that is not there 15 s later, its cluster would drop for good.
    dask.config.set({"distributed.deploy.lost-worker-timeout": LOST_WORKER_TIMEOUT})
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


def _has_workers(choice: RunnerChoice, runner: TaskRunner[Any]) -> bool:
    """Return whether anybody is there to work; False also if nobody can be asked."""
    lookers: dict[str, Callable[[Any], bool]] = {"dask": _has_dask_workers, "ray": _has_ray_nodes}
    try:
        return lookers.get(choice.runner, lambda _: True)(runner)
    except Exception:  # noqa: BLE001 (as above)
        return False


def _has_dask_workers(runner: Any) -> bool:
    client = runner.client
    return bool(client.sync(client.scheduler.ncores, callback_timeout=SCHEDULER_REPLY_SECONDS))


def _has_ray_nodes(_: Any) -> bool:
    import ray

    return any(node["Alive"] for node in ray.nodes())


# -- A flow's stages as Prefect knows them: each a task of the flow run, with retries where the fault may
# pass.

Task = tuple[str, Callable[[Run], object]]

TAGS = ["cortex"]

# A stage is safe to repeat; a passing fault (a locked file, a busy disk) is gone after a moment.
STAGE_RETRIES = 2
RETRY_DELAY_SECONDS = 1


def flow_name(name: str) -> str:
    """Return what Prefect calls the flow `name`: ingest, nightly or backfill."""
    return f"cortex-{name}"


def run_stages(stages: Sequence[Task], run: Run) -> None:
    """Run stages as tasks: of the flow run that this is called in, else of one of its own."""
    if FlowRunContext.get() is not None:
        _run_tasks(stages, run)
        return

    @flow(name=flow_name(run.report.flow), persist_result=False)
    def flow_run(home: str, accepts_loss: bool) -> None:
        _run_tasks(stages, run)

    flow_run(home=str(run.store.home), accepts_loss=run.accepts_loss)


def _run_tasks(stages: Sequence[Task], run: Run) -> None:
    with carrying(run):
        for name, work in stages:
            task(
                name=name,
                tags=[*TAGS, run.report.flow],
                retries=STAGE_RETRIES,
                retry_delay_seconds=RETRY_DELAY_SECONDS,
                retry_condition_fn=_is_passing,
                cache_policy=NO_CACHE,
            )(work)(run)
    with suppress(Exception):  # the run is done, whether or not its report can be shown
        _publish_report(run)


def _publish_report(run: Run) -> None:
    """Make two artifacts: the run's stages as a table, and a link to the store's reports."""
    rows = [{**vars(each), "seconds": round(each.seconds, 3)} for each in run.report.stages]
    create_table_artifact(
        table=rows,
        key=f"cortex-{run.report.flow}",
        description=f"{counted(run.report.transcripts, 'transcript')}, "
        f"{run.report.transcript_bytes:,} bytes; "
        f"{run.report.quarantined_count} set aside. " + " ".join(run.report.notes),
    )
    grown = ", ".join(f"{count:,} {name}" for name, count in sorted(run.report.new_rows.items()))
    create_link_artifact(
        link=reports_folder(run.store.runs).as_uri(),
        link_text="reports of the store's runs",
        key="cortex-growth",
        description=f"New rows: {grown or 'none'}.",
    )


def _is_passing(task: Any, task_run: Any, state: Any) -> bool:
    """Return whether a failed stage is worth repeating: our own errors say so, a bug is not."""
    result = state.result(raise_on_failure=False)
    if isinstance(result, CortexError):
        return result.retryable
    return isinstance(result, OSError)
