"""
A whole nightly run over made memories: `python -m benchmarks.nightly [MEMORIES ...]` (default 10k, 100k, 1M).

Each size is a store of its own with projects of 10,000 memories, in a process of its own. The first nightly
run makes the tables, in a process before it; what is measured is the next day's: everything ages, is ranked,
audited, written and published. Facts are up to 54 days old and every project was worked on each day, as in a
store in daily use. Printed: processor seconds in all and by stage, the process's peak memory, bytes on disk.
With `--csv F` they are kept there, from where `python -m benchmarks.fits` takes them. A million memories
take about half an hour, nearly all of it the first run.
"""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import invented, stage_times
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EVENTS, TURNS

SIZES = (10_000, 100_000, 1_000_000)
PROJECT_MEMORIES = 10_000
OLDEST_DAYS = 54
PARTS = ("retire", "guard", "decay", "render", "database")
HEADINGS = ("memories", "CPU s", *PARTS, "peak MB", "disk MB")
NIGHT = "night"


def fill(home: Path, count: int) -> int:
    """Write events of `count` different facts, and a turn a day, into the lake; return the projects."""
    projects = max(1, count // PROJECT_MEMORIES)
    with Store(home).lake.change() as change:
        for number in range(projects):
            name = f"made-{number:08x}"
            change.append(TURNS, name, _turns(name))
            change.append(EVENTS, name, events(name, number, count // projects))
    return projects


def _turns(project: str) -> pa.Table:
    known = {
        "project_id": project, "session_id": project, "file": "/made", "block": 0, "kind": "prompt",
        "text": "made", "trust": "user", "redactions": 0, "reader_version": 1,
    }  # fmt: skip
    return TURNS.of(
        [
            {
                **known,
                "turn_id": content_id("turn", project, str(day)),
                "line": day + 1,
                "said_at": invented.NOW - timedelta(days=day),
            }
            for day in range(OLDEST_DAYS + 1)
        ]
    )


def events(project: str, seed: int, count: int) -> pa.Table:
    """Return EVENTS of `count` different facts of a project."""
    rows = invented.memories(count, seed=seed)
    ages = np.random.default_rng(seed).integers(0, OLDEST_DAYS * 86_400, count) * 1_000_000
    instants = pa.array(int(invented.NOW.timestamp()) * 1_000_000 - ages).cast(pa.timestamp("us"))
    own: dict[str, object] = {
        "event_id": pa.array([content_id("event", project, str(n)) for n in range(count)]),
        "turn_id": pa.array([content_id("turn", project, str(n)) for n in range(count)]),
        "project_id": pa.repeat(project, count),
        "session_id": pa.array([f"{project}-{n // 20}" for n in range(count)]),
        "event_type": pa.repeat("KNOWLEDGE_ACQUIRED", count),
        "confidence": pa.array(np.random.default_rng(seed).uniform(0.5, 0.95, count)),
        "layer": pa.repeat("layer3:tag", count),  # prose alone is no memory
        "file": pa.repeat("/made", count),
        "said_at": instants.cast(pa.timestamp("us", tz="UTC")),
        "extractor_version": pa.repeat(1, count),
    }
    own["lines"] = pa.array([[n % 2_000 + 1] for n in range(count)])
    shared = {name: rows[name] for name in ("memory_type", "category", "text", "files", "salience", "trust")}
    columns = {**shared, **own}
    arrays = [
        pa.array(columns[f.name]).cast(f.type) if isinstance(columns.get(f.name), pa.Array)
        else columns[f.name].cast(f.type) if f.name in columns
        else pa.nulls(count, f.type)
        for f in EVENTS.arrow
    ]  # fmt: skip
    return pa.Table.from_arrays(arrays, schema=EVENTS.arrow)


def first_night(home: Path, count: int) -> None:
    """Fill a store and let its first nightly run make the tables."""
    fill(home, count)
    report = runs.execute("nightly", _context(home, 0))
    if report.rows["memories"] < count:
        raise ValueError(f"of {count} made facts {report.rows['memories']} became memories")


def next_night(home: Path, count: int, days: int = 1) -> list[stage_times.Figure]:
    """Return what the nightly run costs `days` later, when nothing was said: by stage, and in all."""
    begun = stage_times.busy_seconds()
    with stage_times.timed("nightly") as seconds:
        runs.execute("nightly", _context(home, days))
    return stage_times.figures_of(NIGHT, count, seconds, stage_times.busy_seconds() - begun)


def _context(home: Path, days: int) -> Context:
    context = Context(Settings(home=home), lambda settings: None, lambda: invented.NOW)
    return replace(context, clock=lambda: invented.NOW + timedelta(days=days))


def measure(count: int, kept_in: Path | None) -> str:
    """Return one line of the table; the nights are processes of their own, so that peaks do not mix."""
    with tempfile.TemporaryDirectory(prefix="cortex-nightly-") as scratch:
        home, figures = Path(scratch) / "home", Path(scratch) / "figures.csv"
        for night in ("first", "next"):
            command = [sys.executable, "-m", "benchmarks.nightly", str(count), "--night", night]
            subprocess.run([*command, "--home", str(home), "--csv", str(figures)], check=True)
        rows = stage_times.read(figures)
        if kept_in:
            stage_times.keep(kept_in, rows)
        seconds = {each.stage: each.seconds for each in rows}
        disk = sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 1e6
        parts = [seconds.get(name, 0.0) for name in (stage_times.WHOLE, *PARTS)]
        return _line(
            [f"{count:,}", *(f"{part:.1f}" for part in parts), f"{rows[0].peak_mb:,.0f}", f"{disk:,.0f}"]
        )


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return " ".join(f"{cell:>11}" for cell in cells)


def main() -> None:
    """Print the table; or, as a process of it, let one night pass."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("memories", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--csv", type=Path, help="keep the figures in this file")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--night", choices=("first", "next"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.night == "first":
        first_night(chosen.home, chosen.memories[0])
    elif chosen.night == "next":
        stage_times.keep(chosen.csv, next_night(chosen.home, chosen.memories[0]))
    else:
        print(_line(HEADINGS), flush=True)
        for count in chosen.memories:
            print(measure(count, chosen.csv), flush=True)


if __name__ == "__main__":
    main()
