"""
How long the explorer's pages take: `python -m benchmarks.explorer [MEMORIES ...]` (default 100, 10k, 100k).

Each size is a store of its own with projects of 10,000 memories, five relations each, in sessions of twenty,
and a process of its own. Printed of each page: its size, and the processor time of the first look in that
process, and of the fastest of three more. Processor time, since a machine's neighbours do not count in it.
With `--keep DIR` the stores stay there, and are taken from there the next time.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import invented
from cortex.explorer.application import AccessGate, Explorer
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings, load_settings
from cortex.storage.store import Store
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EDGES, EVENTS, TURNS
from tests.transcripts import decisions

SIZES = (100, 10_000, 100_000)
PROJECT_MEMORIES = 10_000
SESSION_FACTS = 20
# Facts that were not said lately have faded; a store in daily use is mostly of the last two months.
OLDEST_DAYS = 54
EDGES_EACH = 5
LOOKS_AFTER_THE_FIRST = 3


def context_of(home: Path) -> Context:
    """Return the context of a made store, outside of any project and without an embedding model."""
    settings = replace(load_settings(home), home=home)
    return Context(settings, lambda settings: None, lambda: invented.NOW, home.parent)


def fill(home: Path, count: int) -> None:
    """Make a store of `count` different facts, as runs leave it."""
    context = context_of(home)
    names = range(max(1, count // PROJECT_MEMORIES))
    folder = home.parent / f"{home.name}-transcripts"
    began = invented.NOW - timedelta(days=1)
    talks = [decisions(f"p{n}", cwd=f"/home/dev/made-{n}", start=began) for n in names]
    runs.stage_all(Settings(home), [talk.write(folder) for talk in talks])
    runs.execute("backfill", context)
    projects = [row["project_id"] for row in context.open_catalogue().projects()]
    with Store(home).lake.change() as change:
        for seed, project in enumerate(projects):
            facts = _facts(project, seed, count // len(projects))
            change.append(TURNS, project, TURNS.of([_turn(fact) for fact in facts]))
            change.append(EVENTS, project, EVENTS.of(facts))
    runs.execute("nightly", context)
    _relate(home)


def _facts(project: str, seed: int, count: int) -> list[dict[str, object]]:
    """Return EVENTS of one project, in sessions of SESSION_FACTS."""
    rows, random = invented.memories(count, seed=seed), np.random.default_rng(seed)
    texts, types, trusts = (rows[name].to_pylist() for name in ("text", "memory_type", "trust"))
    ages = random.integers(0, OLDEST_DAYS * 86_400, count // SESSION_FACTS + 1)
    facts: list[dict[str, object]] = []
    for n in range(count):
        session = n // SESSION_FACTS
        facts.append(
            {
                "event_id": content_id("event", project, str(n)),
                "turn_id": content_id("turn", project, str(n)),
                "project_id": project,
                "session_id": content_id("session", project, str(session))[:32],
                "event_type": "KNOWLEDGE_ACQUIRED",
                "memory_type": types[n],
                "category": "project",
                "text": texts[n],
                "files": [f"src/made/part_{n % 97}.py"] if n % 3 == 0 else [],
                "confidence": float(random.uniform(0.5, 0.95)),
                "salience": float(random.uniform(0.5, 1.0)),
                "trust": trusts[n],
                "layer": "layer2:en",
                "file": f"/home/dev/transcripts/{project}-{session}.jsonl",
                "lines": [n % SESSION_FACTS + 1],
                "said_at": invented.NOW - timedelta(seconds=int(ages[session])) + timedelta(minutes=n % 20),
                "git_branch": ("main", "dev", f"feature-{session % 30}")[n % 3],
                "extractor_version": 1,
            }
        )
    return facts


def _turn(fact: Mapping[str, object]) -> dict[str, object]:
    shared = ("turn_id", "project_id", "session_id", "file", "said_at", "text", "trust", "git_branch")
    [line] = fact["lines"]  # type: ignore[misc]
    own = {"line": line, "block": 0, "kind": "text", "redactions": 0, "reader_version": 1}
    return {**{name: fact[name] for name in shared}, **own}


def _relate(home: Path) -> None:
    """Publish EDGES_EACH relations for each memory: made texts resemble each other too little to have any."""
    rows = Context(Settings(home)).open_catalogue().read("memories", ("memory_id", "project_id"))
    random = np.random.default_rng(1)
    by_project: dict[str, list[str]] = {}
    for row in rows:
        by_project.setdefault(row["project_id"], []).append(row["memory_id"])
    parts = [EDGES.empty()]
    for project, names in by_project.items():
        ids, count = np.array(names), EDGES_EACH * len(names)
        ends = random.integers(0, len(names), (2, count))
        columns = {
            "edge_id": [content_id("edge", project, str(n)) for n in range(count)],
            "project_id": pa.repeat(project, count),
            "source_id": ids[ends[0]],
            "target_id": ids[ends[1]],
            "edge_type": pa.repeat("relates_to", count),
            "strength": random.random(count),
            "rule": pa.repeat("similarity", count),
        }
        parts.append(pa.table(columns, schema=EDGES.arrow))
    pq.write_table(pa.concat_tables(parts), home / "published" / "edges.parquet", compression="zstd")


def pages_of(context: Context) -> dict[str, str]:
    """Return the pages that are measured, by name: their addresses in this store."""
    catalogue = context.open_catalogue()
    edge = catalogue.read("edges", ("source_id",), order="edge_id", limit=1)[0]
    session = catalogue.read("sessions", ("session_id",), order="session_id", limit=1)[0]["session_id"]
    memory = edge["source_id"]
    words = "+".join(invented.questions(1)[0].split())
    return {
        "Brief": "/",
        "Search, the newest": "/search",
        "Search by a question": f"/search?q={words}",
        "Search by a file": "/search?file=part_7.py",
        "Memory": f"/memory/{memory}",
        "Before forgetting": f"/memory/{memory}/forget",
        "Session": f"/session/{session}",
        "Timeline": "/timeline",
        "Graph, two steps": f"/graph?memory={memory}",
        "Graph of a file": "/graph?file=part_7.py",
        "Review": "/review",
        "Runs": "/runs",
        "Costs": "/costs",
        "Health": "/health",
        "SQL": "/sql?q=select+memory_type,+count(*)+from+memories+group+by+all",
        "Settings": "/settings",
    }


def measure(home: Path, only: Sequence[str] = ()) -> None:
    """Print a line for each page: kB, then milliseconds of processor time, the first and the fastest."""
    context = context_of(home)
    explorer = Explorer(lambda: context_of(home), AccessGate("127.0.0.1:1"))
    for name, address in pages_of(context).items():
        if only and name not in only:
            continue
        times = []
        for _ in range(1 + LOOKS_AFTER_THE_FIRST):
            began = time.process_time()
            size = len(explorer.render_address(address).encode())
            times.append((time.process_time() - began) * 1e3)
        print(f"{name:<22}{size / 1e3:>8.1f}{times[0]:>9.0f}{min(times[1:]):>9.0f}", flush=True)


def main() -> None:
    """Print a table for each size, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="MEMORIES", default=SIZES)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the stores stay")
    parser.add_argument("--page", action="append", default=[], metavar="NAME", help="measure this one only")
    parser.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.of:
        measure(chosen.of, chosen.page)
        return
    with tempfile.TemporaryDirectory(prefix="cortex-explorer-") as scratch:
        for size in chosen.sizes:
            home = (chosen.keep or Path(scratch)).resolve() / f"store-{size}"
            if not home.exists():
                home.parent.mkdir(parents=True, exist_ok=True)
                fill(home, size)
            print(f"\n{size:,} memories{'kB':>9}{'first':>9}{'again':>9}", flush=True)
            command = [sys.executable, "-m", "benchmarks.explorer", "--of", str(home)]
            subprocess.run([*command, *(f"--page={name}" for name in chosen.page)], check=True)


if __name__ == "__main__":
    main()
