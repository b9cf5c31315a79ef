"""
What one short session costs: `python -m benchmarks.short_session [MEMORIES ...]` (default 100, 10k, 100k).

Each size is a store with one project of made memories that have vectors of made numbers; the first night
makes its tables. Then a person decides something in a short session, and one run reads it, in a process of
its own: once to fill what such a run keeps, and again, which is what is measured. Printed: processor seconds
of that run by stage, without imports, and the process's peak memory. With `--homes F` the stores are made in
that folder and kept, so that another version can be measured on copies of the same ones.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import invented, nightly, stage_times, two_writers
from benchmarks.shared_session import RandomEmbedder
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.remote.store_lease import lease
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE

SIZES = (100, 10_000, 100_000)
PARTS = ("guard", "link", "decay", "consolidate", "render", "database")
HEADINGS = ("memories", "CPU s", *PARTS, "peak MB")


def fill(home: Path, count: int) -> None:
    """Make a store of one project of `count` memories, and let a night make its tables."""
    context = _context(home)
    say(home, "first")
    (project,) = (scope for scope in Store(home).tables.scopes() if scope != GLOBAL_SCOPE)
    with lease(home), Store(home).lake.change() as change:
        change.append(EVENTS, project, nightly.events(project, 0, count))
    runs.execute("nightly", context)


def say(home: Path, name: str) -> float:
    """Let a person decide something, and read it; return the processor seconds of the run."""
    context = _context(home)
    path = two_writers.write_session(home.with_name("projects"), name, "/home/dev/kelp0")
    runs.stage_all(context.settings, [path])
    begun = stage_times.busy_seconds()
    runs.execute("ingest", context)
    return stage_times.busy_seconds() - begun


def measure(home: Path, name: str) -> str:
    """Return one line of figures of a run over one short session, once everything is imported."""
    _import_all()
    with stage_times.timed("ingest") as seconds:
        whole = say(home, name)
    cells = (whole, *(seconds.get(part, 0.0) for part in PARTS))
    return " ".join([*(f"{cell:>11.2f}" for cell in cells), f"{stage_times.peak_megabytes():>11,.0f}"])


def _import_all() -> None:
    """Read a session into a store of its own, so that what a run imports late is there."""
    with tempfile.TemporaryDirectory(prefix="cortex-warm-") as folder:
        home = Path(folder) / "home"
        for name in ("first", "second"):
            say(home, name)


def _context(home: Path) -> Context:
    return Context(Settings(home=home), lambda settings: RandomEmbedder(), lambda: invented.NOW)


def main() -> None:
    """Print the table; or, as a process of it, fill a store or read a session."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("memories", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--homes", type=Path, help="keep the stores in this folder")
    parser.add_argument("--fill", action="store_true", help="only make the stores")
    parser.add_argument("--say", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cortex-short-") as folder:
        scratch = Path(folder)
        os.environ["HOME"] = folder
        if chosen.say:
            print(measure(chosen.homes / "home", chosen.say), flush=True)
            return
        print(" ".join(f"{cell:>11}" for cell in HEADINGS), flush=True)
        for count in chosen.memories:
            store = (chosen.homes or scratch) / f"{count}" / "home"
            if not store.is_dir():
                fill(store, count)
            if chosen.fill:
                continue
            shutil.copytree(store.parent, scratch / "copy")
            for name in ("second", "third"):
                command = [sys.executable, "-m", "benchmarks.short_session", "--say", name]
                ran = subprocess.run(
                    [*command, "--homes", str(scratch / "copy")], check=True, capture_output=True, text=True
                )
            print(f"{count:>11,} {ran.stdout.rstrip()}", flush=True)
            shutil.rmtree(scratch / "copy")


if __name__ == "__main__":
    main()
