"""Which of Prefect's task runners spreads shards over workers, and whether its library is here."""

import importlib.util
from dataclasses import dataclass
from typing import Literal

from cortex.flows.reading.shard_worker import cores
from cortex.storage.ground.place import install_extra
from cortex.storage.settings.settings import WorkerSettings
from cortex.transforms.errors import RunnerMissing, UnknownValue

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
