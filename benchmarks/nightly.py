"""
A whole nightly run over made memories: `python -m benchmarks.nightly [MEMORIES ...]` (default 10k, 100k, 1M).

Each size is a store of its own with projects of 10,000 memories, in a process of its own. The first nightly
run makes the tables; what is measured is the next day's: everything ages, is ranked, audited, written and
published. Facts are up to 54 days old and every project was worked on each day, as in a store in daily use.
Printed: seconds in all and by stage, the process's peak memory, bytes on disk.
"""

import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import invented
from cortex.flows import runs
from cortex.flows.context import Context
from cortex.storage.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EVENTS, TURNS

SIZES = (10_000, 100_000, 1_000_000)
PROJECT_MEMORIES = 10_000
OLDEST_DAYS = 54
PARTS = ("retire", "erase", "embed", "link", "decay", "consolidate", "render")
HEADINGS = ("memories", "projects", "seconds", *PARTS, "peak MB", "disk MB")


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
        "layer": pa.repeat("layer2:en", count),
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


def measure(count: int) -> str:
    """Return one line of the table."""
    with tempfile.TemporaryDirectory(prefix="cortex-nightly-") as scratch:
        home = Path(scratch) / "home"
        projects = fill(home, count)
        context = Context(Settings(home=home), lambda settings: None, lambda: invented.NOW)
        runs.execute("nightly", context)
        report = runs.execute("nightly", replace(context, clock=lambda: invented.NOW + timedelta(days=1)))
        stages = {stage.stage: stage.seconds for stage in report.stages}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        disk = sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 1e6
        parts = [stages.get(name, 0.0) for name in PARTS]
        seconds = sum(seconds for name, seconds in stages.items() if name != "audit")
        cells = [f"{count:,}", f"{projects}", f"{seconds:.1f}", *(f"{part:.1f}" for part in parts)]
        return _line([*cells, f"{peak:,.0f}", f"{disk:,.0f}"])


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return " ".join(f"{cell:>11}" for cell in cells)


def main() -> None:
    """Print the table; each size in a process of its own, so that peaks do not mix."""
    if len(sys.argv) == 2 and sys.argv[1].startswith("only="):
        print(measure(int(sys.argv[1].removeprefix("only="))))
        return
    print(_line(HEADINGS), flush=True)
    for count in [int(text) for text in sys.argv[1:]] or SIZES:
        subprocess.run([sys.executable, "-m", "benchmarks.nightly", f"only={count}"], check=True)


if __name__ == "__main__":
    main()
