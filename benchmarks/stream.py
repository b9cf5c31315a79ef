"""
A long history, streamed: `python -m benchmarks.stream [MEGABYTES] [--plot P.svg] [--csv F]`.

Made transcripts are written, read by a backfill without a model and removed again, shard by shard, all in one
process. Printed after each shard: megabytes so far, processor seconds of the shard, the process's memory now
and at most, files and megabytes of the store, versions of its tables, memories. With a path, memory and speed
are drawn there; with `--csv` the processor seconds of each stage are kept, from where `python -m
benchmarks.fits` takes them. The default is 10 GB; memory is flat once it has seen a few shards.
"""

import argparse
import resource
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from benchmarks import invented, stage_times
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.assistant_folders import find_transcripts

# With so much in each tool's result a line has 4 kB on average, as in 57 real sessions of 25 MB.
RESULT_CHARS = 14_000
SHARD_MEGABYTES = 64.0
HEADINGS = ("MB", "CPU s", "MB now", "MB at most", "files", "store MB", "versions", "memories")
PAGE_BYTES = resource.getpagesize()


@dataclass(frozen=True)
class Shard:
    """What there was after a shard; `seconds` of processor time are the shard's own."""

    megabytes: float
    seconds: float
    memory_now: float
    memory_peak: float
    files: int
    store_megabytes: float
    versions: int
    memories: int
    stages: Mapping[str, float] = field(default_factory=dict)


def stream(home: Path, scratch: Path, megabytes: float, shard: float, projects: int) -> Iterator[Shard]:
    """Yield what each shard left behind, until `megabytes` were read."""
    context = Context(Settings(home=home), lambda settings: None, lambda: invented.NOW)
    copies, read = 0, 0.0
    while read < megabytes:
        written = 0.0
        while written < shard:
            written += _write(scratch, copies, projects)
            copies += 1
        begun = stage_times.busy_seconds()
        with stage_times.timed("backfill") as stages:
            runs.stage_all(context.settings, find_transcripts(scratch))
            report = runs.execute("backfill", context)
        seconds = stage_times.busy_seconds() - begun
        shutil.rmtree(scratch)
        read += written
        yield _shard(home, read, seconds, report.rows["memories"], stages)


def _write(scratch: Path, number: int, projects: int) -> float:
    return invented.transcripts(scratch, 1, first=number, projects=projects, chars=RESULT_CHARS) / 1e6


def _shard(home: Path, megabytes: float, seconds: float, memories: int, stages: Mapping[str, float]) -> Shard:
    files = [path for path in home.rglob("*") if path.is_file()]
    return Shard(
        megabytes,
        seconds,
        int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6,
        stage_times.peak_megabytes(),
        len(files),
        sum(path.stat().st_size for path in files) / 1e6,
        sum(path.parent.name == "_versions" for path in files),
        memories,
        stages,
    )


def figures_of(shard: Shard) -> list[stage_times.Figure]:
    """Return what a shard cost by stage, at the megabytes read until then."""
    return stage_times.figures_of("stream", shard.megabytes, shard.stages, shard.seconds)


def plot(shards: list[Shard], path: Path) -> None:
    """Draw memory and speed over what was read."""
    import pygal  # of the development group

    chart = pygal.XY(
        js=[], width=720, height=360, explicit_size=True, legend_at_bottom=True, include_x_axis=True,
        x_title="MB of transcripts read", style=pygal.style.CleanStyle,
    )  # fmt: skip
    chart.add("memory at most, MB", [(each.megabytes, each.memory_peak) for each in shards])
    chart.add("memory after the shard, MB", [(each.megabytes, each.memory_now) for each in shards])
    chart.add("store, MB", [(each.megabytes, each.store_megabytes) for each in shards])
    path.write_bytes(chart.render(disable_xml_declaration=True).encode())


def main() -> None:
    """Print the table, and draw it where a path is given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("megabytes", nargs="?", type=float, default=10_000.0)
    parser.add_argument("--shard", type=float, default=SHARD_MEGABYTES)
    parser.add_argument("--projects", type=int, default=50)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--csv", type=Path, help="keep the seconds of each stage in this file")
    chosen = parser.parse_args()
    print(" ".join(f"{heading:>11}" for heading in HEADINGS), flush=True)
    shards = []
    with tempfile.TemporaryDirectory(prefix="cortex-stream-") as folder:
        places = Path(folder, "home"), Path(folder, "transcripts")
        for shard in stream(*places, chosen.megabytes, chosen.shard, chosen.projects):
            shards.append(shard)
            numbers = [getattr(shard, each.name) for each in fields(Shard)[: len(HEADINGS)]]
            print(" ".join(f"{value:>11,.0f}" for value in numbers), flush=True)
            if chosen.csv:
                stage_times.keep(chosen.csv, figures_of(shard))
    if chosen.plot:
        plot(shards, chosen.plot)


if __name__ == "__main__":
    main()
