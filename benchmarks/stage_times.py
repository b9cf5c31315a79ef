"""Processor seconds of each stage of a run, and the figures of several sizes: a CSV file, fits, a plot."""

import csv
import resource
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from cortex.flows.engines import runs
from cortex.flows.run.run import Run, Stage

# Of what takes less no exponent is told: it would be that of the clock.
MIN_SECONDS = 0.2
# A shorter stage is not kept at all.
SHORTEST = 0.05
WHOLE = "all"


def busy_seconds() -> float:
    """Return the processor time of this process so far, and of the processes that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def peak_megabytes() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


@contextmanager
def timed(flow: str) -> Iterator[dict[str, float]]:
    """Yield the processor seconds by stage of a flow's runs within the block; run twice, they add up."""
    seconds: dict[str, float] = defaultdict(float)

    def work(stage: Stage, run: Run) -> None:
        begun = busy_seconds()
        stage.work(run)
        seconds[stage.name] += busy_seconds() - begun

    stages = [replace(stage, work=partial(work, stage)) for stage in runs.FLOWS[flow]]
    with patch.dict(runs.FLOWS, {flow: tuple(stages)}):
        yield seconds


@dataclass(frozen=True)
class Figure:
    """Processor seconds of a stage, or of all, at a size; memory at most is the process's."""

    what: str
    size: float
    stage: str
    seconds: float
    peak_mb: float


def keep(path: Path, figures: Iterable[Figure]) -> None:
    """Put figures into a CSV file, in the place of those of the same size and stage."""
    known = {(each.what, each.size, each.stage): each for each in [*read(path), *figures]}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Figure)])
        for key in sorted(known):
            row = known[key]
            writer.writerow(
                [row.what, f"{row.size:g}", row.stage, f"{row.seconds:.2f}", f"{row.peak_mb:.0f}"]
            )


def read(path: Path) -> list[Figure]:
    """Return the figures of a CSV file; none if it is not there."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Figure(r["what"], float(r["size"]), r["stage"], float(r["seconds"]), float(r["peak_mb"]))
            for r in csv.DictReader(file)
        ]


def figures_of(what: str, size: float, seconds: Mapping[str, float], whole: float) -> list[Figure]:
    """Return the figures of a run: each stage's seconds, and those of the whole run."""
    peak, spent = peak_megabytes(), {**seconds, WHOLE: whole}
    return [Figure(what, size, stage, its, peak) for stage, its in spent.items() if its >= SHORTEST]


@dataclass(frozen=True)
class Fit:
    """How a stage grows: seconds = `factor` x size ^ `exponent`, by least squares on logarithms of both."""

    stage: str
    exponent: float
    factor: float
    largest: float
    points: int

    def at(self, size: float) -> float:
        """Return the seconds that it tells of a size."""
        return float(self.factor * size**self.exponent)


def fits(figures: Iterable[Figure], what: str) -> list[Fit]:
    """Return how each stage of `what` grows that takes long enough at two sizes, the longest first."""
    by_stage: dict[str, dict[float, float]] = defaultdict(dict)
    for each in figures:
        if each.what == what and each.seconds >= MIN_SECONDS:
            by_stage[each.stage][each.size] = each.seconds
    fitted = []
    for stage, points in by_stage.items():
        if len(points) > 1:
            sizes, seconds = np.log(list(points)), np.log(list(points.values()))
            exponent, constant = np.polyfit(sizes, seconds, 1)
            largest = points[max(points)]
            fitted.append(Fit(stage, float(exponent), float(np.exp(constant)), largest, len(points)))
    return sorted(fitted, key=lambda fit: -fit.largest)


def plot(figures: list[Figure], what: str, size: str, path: Path, *, most: int = 6) -> None:
    """Draw the stages of `what` that take longest over the size, both by their logarithms."""
    import pygal  # of the development group

    # No script: by default it fetches one from its makers' site.
    chart = pygal.XY(
        js=[], width=720, height=420, explicit_size=True, legend_at_bottom=True, logarithmic=True,
        x_title=f"{size}, as a power of ten", y_title="processor seconds", style=pygal.style.CleanStyle,
    )  # fmt: skip
    for fit in fits(figures, what)[:most]:
        points = [
            (each.size, each.seconds) for each in figures if (each.what, each.stage) == (what, fit.stage)
        ]
        line = [(float(np.log10(at)), seconds) for at, seconds in sorted(points) if seconds > 0]
        chart.add(f"{fit.stage}: size ^ {fit.exponent:.2f}", line)
    path.write_bytes(chart.render(disable_xml_declaration=True).encode())
