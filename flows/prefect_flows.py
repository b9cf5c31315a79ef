"""
The flows as Prefect knows them: `ingest`, `nightly` and `backfill`, to call, to serve and to deploy.

Each stage is a task of the flow run, with retries where the fault may pass. Only this module and that of the
runners import Prefect at their top; the plain engine never imports it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext

from cortex.flows.context import Context
from cortex.flows.prefect_runners import carrying
from cortex.flows.report import RunReport
from cortex.flows.run import Run
from cortex.flows.runner_choice import Runner
from cortex.storage.reports import reports_folder
from cortex.storage.settings import load_settings
from cortex.transforms.errors import CortexError, StoreBusy

Task = tuple[str, Callable[[Run], object]]

TAGS = ["cortex"]

# A stage is safe to repeat; a passing fault (a locked file, a busy disk) is gone after a moment.
STAGE_RETRIES = 2
RETRY_DELAY_SECONDS = 1

# A deployed run waits this long, as often, where another run writes to the store.
BUSY_RETRIES = 10
BUSY_DELAY_SECONDS = 60

# A run that somebody began outside of Prefect, whose stages a flow run is to show.
_begun: ContextVar[tuple[Sequence[Task], Run] | None] = ContextVar("begun", default=None)


@flow(name="cortex-ingest", persist_result=False)
def ingest_flow(home: str | None = None, accepts_loss: bool = False, runner: Runner | None = None) -> None:
    """Take in what waits in staging and what other assistants' transcripts have grown by."""
    _run_or_show("ingest", home, accepts_loss, runner)


@flow(name="cortex-nightly", persist_result=False)
def nightly_flow(home: str | None = None, accepts_loss: bool = False, runner: Runner | None = None) -> None:
    """Do what ingest does, and everything that is done once a day: ageing, merging, pruning."""
    _run_or_show("nightly", home, accepts_loss, runner)


@flow(name="cortex-backfill", persist_result=False)
def backfill_flow(
    home: str | None = None,
    accepts_loss: bool = False,
    paths: list[str] | None = None,
    runner: Runner | None = None,
) -> None:
    """Read what is new in the transcripts below `paths` (default: the assistants' folders)."""
    from cortex.flows.operations import intake

    if not _show_begun():
        context, places = _context(home), [Path(path) for path in paths or []]
        _when_free(
            lambda: (
                intake.backfill(
                    context, places, engine="prefect", accepts_loss=accepts_loss, runner=runner
                ).report
            )
        )


# Prefect says nothing of a flow's own type that parameters and deployments together would follow from.
PREFECT_FLOWS: Mapping[str, Any] = {"ingest": ingest_flow, "nightly": nightly_flow, "backfill": backfill_flow}


def _run_or_show(name: str, home: str | None, accepts_loss: bool, runner: Runner | None) -> None:
    from cortex.flows.operations import intake

    if not _show_begun():
        context = _context(home)
        _when_free(
            lambda: intake.run_flow(context, name, engine="prefect", accepts_loss=accepts_loss, runner=runner)
        )


def _context(home: str | None) -> Context:
    return Context(load_settings(Path(home).expanduser().absolute() if home else None))


def _when_free(work: Callable[[], RunReport]) -> RunReport:
    """Do `work`; wait where another run writes to the store. Raises StoreBusy after BUSY_RETRIES."""
    for _ in range(BUSY_RETRIES):
        with suppress(StoreBusy):
            return work()
        time.sleep(BUSY_DELAY_SECONDS)
    return work()


def run_stages(stages: Sequence[Task], run: Run) -> None:
    """Run stages as tasks: of the flow run that this is called in, else of one of its own."""
    if FlowRunContext.get() is not None:
        _run_tasks(stages, run)
        return
    with _beginning(stages, run):
        PREFECT_FLOWS[run.report.flow](home=str(run.store.home), accepts_loss=run.accepts_loss)


@contextmanager
def _beginning(stages: Sequence[Task], run: Run) -> Iterator[None]:
    token = _begun.set((stages, run))
    try:
        yield
    finally:
        _begun.reset(token)


def _show_begun() -> bool:
    """Run the stages of a run that was begun outside; return whether there is one."""
    begun = _begun.get()
    if begun is None:
        return False
    _run_tasks(*begun)
    return True


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
        description=f"{run.report.transcripts} transcripts, {run.report.transcript_bytes:,} bytes; "
        f"{len(run.report.quarantined)} set aside. " + " ".join(run.report.notes),
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
