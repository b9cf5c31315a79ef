"""The two ways of running a list of stages: one after another, or as tasks of a Prefect flow."""

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TypeVar

from cortex.flows.engines.engine_choice import PLAIN
from cortex.flows.run.run import Run
from cortex.flows.stages.order import TABLES
from cortex.flows.stages.stage import Stage
from cortex.storage.published.reports import prefect_history
from cortex.transforms.errors import TablesDamaged

_Result = TypeVar("_Result")

PREFECT_REASON_CHARS = 160


def run_plain(stages: Sequence[Stage], run: Run) -> None:
    """Run the stages one after another in this process."""
    for stage in stages:
        healing(stage)(run)


def healing(stage: Callable[[Run], _Result]) -> Callable[[Run], _Result]:
    """Return `stage` so that damaged tables in its way are made again from the lake, once a scope."""

    @wraps(stage)
    def healed(run: Run) -> _Result:
        healed_scopes: set[str | None] = set()
        while True:
            try:
                return stage(run)
            except TablesDamaged as error:
                if error.scope is None or error.scope in healed_scopes:
                    raise
                healed_scopes.add(error.scope)
                run.report.note(error.problem + " It was made again from the lake.")
                run.store.tables.drop(error.scope)
                for table_stage in TABLES:
                    table_stage(run)

    return healed


def run_with_prefect(stages: Sequence[Stage], run: Run) -> None:
    """
    Run the stages as tasks of a Prefect flow run: that in which this is called, or one of its own.

    Starts Prefect's temporary server (7 to 10 s) unless the environment names one; it ends with the flow.
    Its history lies in the store's own folder and nothing is reported to its makers. If Prefect itself
    fails, such as a server that starts late, the stages run without it: they are safe to repeat.
    """
    configure_prefect(run.store.home)
    atexit.register(_end_quietly)
    faults: list[BaseException] = []
    try:
        _run_flow([(stage.name, noting(healing(stage), faults)) for stage in stages], run)
    except Exception as error:
        if any(error is fault for fault in faults):
            raise
        run.report.engine = PLAIN
        run.report.note(f"Prefect failed ({_reason_of(error)}): the stages ran without it.")
        run_plain(stages, run)


def noting(work: Callable[[Run], _Result], faults: list[BaseException]) -> Callable[[Run], _Result]:
    """Return `work` so that what it raises is noted: all else that ends a flow is Prefect's."""

    @wraps(work)
    def noted(run: Run) -> _Result:
        try:
            return work(run)
        except BaseException as error:
            faults.append(error)
            raise

    return noted


def _run_flow(stages: Sequence[tuple[str, Callable[[Run], object]]], run: Run) -> None:
    from cortex.flows.engines.prefect_stages import run_stages

    run_stages(stages, run)


def _reason_of(error: BaseException) -> str:
    """Return the first line of what went wrong, without the address and output that may follow it."""
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__)[:PREFECT_REASON_CHARS].rstrip(". ")


def configure_prefect(home: Path) -> None:
    """Keep Prefect's files inside the store and its reports to its makers off; the user's own choice wins."""
    chosen = {
        "PREFECT_HOME": str(prefect_history(home)),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "CRITICAL",  # the command says what failed, without a traceback
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
        # Its own 20 s are too few on a busy machine: 37 s were seen on two busy cores. Past this the stages
        # run without it.
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "60",
        "DO_NOT_TRACK": "1",
    }
    for name, value in chosen.items():
        os.environ.setdefault(name, value)


def _end_quietly() -> None:
    """
    Drop what libraries print after the last exit handler.

    DuckDB's binding reports each of its own types as leaked when the interpreter ends after a Prefect run
    (about 40 lines, tried with duckdb 2.0 and prefect 3.8). Registered before Prefect's handlers, so it runs
    after them and hides nothing of theirs.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
