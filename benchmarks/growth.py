"""
How a store grows: `python -m benchmarks.growth [BATCHES]` (default 1,000), one small session a batch.

Each batch is what a hook's background run does after a session. Printed every tenth of the way: bytes of the
store, files, memories, bytes a memory. Versions and replaced files are pruned in the run itself, so the size
follows what is known and not how often it was written.
"""

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cortex.flows import runs
from cortex.settings import Settings
from tests.flows.conftest import WordEmbedder
from tests.transcripts import decisions

START = datetime(2026, 9, 1, 8, tzinfo=UTC)


def grow(home: Path, projects: Path, batches: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (batches so far, bytes, files, memories) ten times on the way."""
    runs.embedder_of = lambda settings: WordEmbedder()
    settings = Settings(home=home)
    for number in range(1, batches + 1):
        path = decisions(f"s{number}", start=START + timedelta(hours=number)).write(projects)
        runs.stage_all(settings, [path])
        report = runs.execute("ingest", settings, now=START + timedelta(hours=number + 1), engine="plain")
        if number % max(1, batches // 10) == 0:
            files = [file for file in home.rglob("*") if file.is_file()]
            yield number, sum(f.stat().st_size for f in files), len(files), report.rows["memories"]


def main() -> None:
    """Print the table."""
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{'batches':>8} {'bytes':>12} {'files':>6} {'memories':>9} {'bytes/memory':>13}")
    with tempfile.TemporaryDirectory(prefix="cortex-growth-") as scratch:
        folder = Path(scratch)
        for number, size, files, memories in grow(folder / "home", folder / "projects", batches):
            each = size // max(1, memories)
            print(f"{number:>8} {size:>12,} {files:>6} {memories:>9} {each:>13,}", flush=True)


if __name__ == "__main__":
    main()
