"""
A flow's stages as Prefect knows them: each a task of the flow run, with retries where the fault may pass.

The plain engine imports neither this nor Prefect.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext

from cortex.flows.engines.prefect_runners import carrying
from cortex.flows.run.run import Run
from cortex.storage.published.reports import reports_folder
from cortex.transforms.errors import CortexError

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
