"""
How a store grows: `python -m benchmarks.growth [BATCHES] [PLOT.svg]`, one small session a batch (1,000).

Each batch is what a hook's background run does after a session. Printed every tenth of the way: bytes of the
store, files, memories, bytes a memory. Versions and replaced files are pruned in the run itself, so the size
follows what is known and not how often it was written. With a path, the table is drawn there as well.
"""

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.bench import Bench
from tests.transcripts import decisions

HEADINGS = ("batches", "bytes", "files", "memories", "bytes/memory")
Row = tuple[int, int, int, int]

START = datetime(2026, 9, 1, 8, tzinfo=UTC)


def grow(home: Path, projects: Path, batches: int) -> Iterator[Row]:
    """Yield (batches so far, bytes, files, memories) ten times on the way."""
    bench = Bench(home, projects)
    for number in range(1, batches + 1):
        path = decisions(f"s{number}", start=START + timedelta(hours=number)).write(projects)
        bench.stage(path)
        report = bench.run(now=START + timedelta(hours=number + 1))
        if number % max(1, batches // 10) == 0:
            files = [file for file in home.rglob("*") if file.is_file()]
            yield number, sum(f.stat().st_size for f in files), len(files), report.rows["memories"]


def plot(rows: list[Row], path: Path) -> None:
    """Draw the size of the store, and the bytes a memory, over the batches."""
    import pygal  # of the development group

    # No script: by default it fetches one from its makers' site.
    chart = pygal.XY(
        js=[], width=720, height=360, explicit_size=True, legend_at_bottom=True, include_x_axis=True,
        x_title="runs, each after one small session", style=pygal.style.CleanStyle,
    )  # fmt: skip
    chart.add("store, MB", [(batches, size / 1e6) for batches, size, *_ in rows])
    chart.add("KiB a memory", [(batches, size / 1024 / memories) for batches, size, _, memories in rows])
    path.write_bytes(chart.render(disable_xml_declaration=True).encode())


def main() -> None:
    """Print the table, and draw it where a path is given."""
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(" ".join(f"{heading:>13}" for heading in HEADINGS))
    rows = []
    with tempfile.TemporaryDirectory(prefix="cortex-growth-") as scratch:
        folder = Path(scratch)
        for row in grow(folder / "home", folder / "projects", batches):
            rows.append(row)
            print(" ".join(f"{n:>13,}" for n in (*row, row[1] // max(1, row[3]))), flush=True)
    if len(sys.argv) > 2:
        plot(rows, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
