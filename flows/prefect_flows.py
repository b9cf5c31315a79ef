"""The flows as Prefect knows them: `ingest`, `nightly` and `backfill`, to call, to serve and to deploy."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from prefect import flow, serve

from cortex.flows.context import Context
from cortex.flows.engines.prefect_stages import TAGS, flow_name
from cortex.flows.operations.maintain.intake import backfill, run_flow
from cortex.flows.reading.shard_worker import Runner
from cortex.flows.run_report import RunReport
from cortex.storage.settings.settings import load_settings
from cortex.transforms.errors import StoreBusy

# A deployed run waits this long, as often, where another run writes to the store.
BUSY_RETRIES = 10
BUSY_DELAY_SECONDS = 60


@flow(name=flow_name("ingest"), persist_result=False)
def ingest_flow(home: str | None = None, accepts_loss: bool = False, runner: Runner | None = None) -> None:
    """Take in what waits in staging and what other assistants' transcripts have grown by."""
    _run("ingest", home, accepts_loss, runner)


@flow(name=flow_name("nightly"), persist_result=False)
def nightly_flow(home: str | None = None, accepts_loss: bool = False, runner: Runner | None = None) -> None:
    """Do what ingest does, and everything that is done once a day: ageing, merging, pruning."""
    _run("nightly", home, accepts_loss, runner)


@flow(name=flow_name("backfill"), persist_result=False)
def backfill_flow(
    home: str | None = None,
    accepts_loss: bool = False,
    paths: list[str] | None = None,
    runner: Runner | None = None,
) -> None:
    """Read what is new in the transcripts below `paths` (default: the assistants' folders)."""
    context, places = _context(home), [Path(path) for path in paths or []]
    _when_free(
        lambda: backfill(context, places, engine="prefect", accepts_loss=accepts_loss, runner=runner).report
    )


# Prefect says nothing of a flow's own type that parameters and deployments together would follow from.
PREFECT_FLOWS: Mapping[str, Any] = {"ingest": ingest_flow, "nightly": nightly_flow, "backfill": backfill_flow}


def serve_flows(home: str, cron: str) -> None:
    """
    Let the server start the flows over the store at `home`, `nightly` by itself whenever `cron` says.

    One at a time; the others wait. Runs until it is ended.
    """
    deployments = [
        each.to_deployment(
            name="served",
            parameters={"home": home},
            tags=TAGS,
            cron=cron if name == "nightly" else None,
            concurrency_limit=1,
        )
        for name, each in PREFECT_FLOWS.items()
    ]
    serve(*deployments, limit=1, print_starting_message=False)


def _run(name: str, home: str | None, accepts_loss: bool, runner: Runner | None) -> None:
    context = _context(home)
    _when_free(lambda: run_flow(context, name, engine="prefect", accepts_loss=accepts_loss, runner=runner))


def _context(home: str | None) -> Context:
    return Context(load_settings(Path(home).expanduser().absolute() if home else None))


def _when_free(work: Callable[[], RunReport]) -> RunReport:
    """Do `work`; wait where another run writes to the store. Raises StoreBusy after BUSY_RETRIES."""
    for _ in range(BUSY_RETRIES):
        with suppress(StoreBusy):
            return work()
        time.sleep(BUSY_DELAY_SECONDS)
    return work()
