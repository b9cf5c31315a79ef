"""What whole runs over large stores cost: a night, a long history, the first brief of a backfill."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import invented, nightly, stage_times, stream
from benchmarks.measures import Measured, Sizes, parse_as_json
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.assistant_folders import find_transcripts

# What a program that imports the libraries of tables has in memory, printed in MB.
LIBRARIES = (
    "import resource, duckdb, lancedb, polars, pyarrow.parquet;"
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)"
)
FIRST_BRIEF_MEGABYTES = 25.0


def night(sizes: Sizes) -> Iterator[Measured]:
    """Measure a nightly run a day later, against writing and reading the same memories as Parquet."""
    with tempfile.TemporaryDirectory(prefix="cortex-night-") as scratch:
        kept = Path(scratch, "figures.csv")
        nightly.measure(sizes.nights, kept)
        [whole] = [each for each in stage_times.read(kept) if each.stage == stage_times.WHOLE]
        copied = _parquet_seconds(Path(scratch, "memories.parquet"), sizes.nights)
    what = f"night, {sizes.nights:,} memories"
    yield Measured(
        f"{what}, processor time", whole.seconds, "s", "write and read them as Parquet", copied, "120", "40"
    )
    yield Measured(f"{what}, memory", whole.peak_mb, "MB", "the libraries", _libraries_mb(), "2000")


def long_history(sizes: Sizes) -> Iterator[Measured]:
    """Measure the memory of a process that reads transcripts shard by shard, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="cortex-history-") as scratch:
        kept = Path(scratch, "figures.csv")
        shard = min(stream.SHARD_MEGABYTES, sizes.streamed_megabytes / 4)
        command = [sys.executable, "-m", "benchmarks.stream", str(sizes.streamed_megabytes)]
        options = ["--shard", str(shard), "--csv", str(kept)]
        subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
        shards = [each for each in stage_times.read(kept) if each.stage == stage_times.WHOLE]
    first, last = min(shards, key=lambda each: each.size), max(shards, key=lambda each: each.size)
    what = f"memory of runs over {last.size:,.0f} MB of transcripts"
    yield Measured(what, last.peak_mb, "MB", "the libraries", _libraries_mb(), "2000", "1000")
    yield Measured(
        "… processor time of the last shard", last.seconds, "s", "of the first shard", first.seconds
    )


def first_brief(sizes: Sizes) -> Iterator[Measured]:
    """Time a backfill of 25 MB until its first brief is published, against parsing the same as JSON."""
    with tempfile.TemporaryDirectory(prefix="cortex-first-brief-") as scratch:
        folder, megabytes, copies = Path(scratch, "transcripts"), 0.0, 0
        while megabytes < FIRST_BRIEF_MEGABYTES:
            written = invented.transcripts(folder, 1, first=copies, projects=17, chars=stream.RESULT_CHARS)
            megabytes, copies = megabytes + written / 1e6, copies + 1
        paths, settings = find_transcripts(folder), Settings(home=Path(scratch, "home"))
        begun = stage_times.busy_seconds()
        for path in paths:
            parse_as_json(path)
        parsed, begun = stage_times.busy_seconds() - begun, stage_times.busy_seconds()
        with stage_times.timed("backfill") as stages:
            runs.stage_all(settings, paths)
            runs.execute("backfill", Context(settings, lambda settings: None, lambda: invented.NOW))
        whole = stage_times.busy_seconds() - begun
    names = list(stages)
    until = sum(stages[name] for name in names[: names.index("render") + 1])
    what = f"processor time of {megabytes:.0f} MB, 17 projects, no model"
    yield Measured(f"{what}, up to all briefs", until, "s", "orjson parse", parsed, "10", "4")
    yield Measured(f"{what}, the whole backfill", whole, "s", "orjson parse", parsed)


def _parquet_seconds(path: Path, count: int) -> float:
    rows = invented.memories(min(count, nightly.PROJECT_MEMORIES))
    begun = stage_times.busy_seconds()
    with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
        for _ in range(max(1, count // nightly.PROJECT_MEMORIES)):
            writer.write_table(rows)
    for batch in pq.ParquetFile(path).iter_batches():
        pa.Table.from_batches([batch])
    return stage_times.busy_seconds() - begun


def _libraries_mb() -> float:
    printed = subprocess.run([sys.executable, "-c", LIBRARIES], check=True, capture_output=True, text=True)
    return float(printed.stdout)


ALL: tuple[Callable[[Sizes], Iterator[Measured]], ...] = (first_brief, night, long_history)
