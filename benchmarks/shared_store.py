"""
What a shared store comes to: `python -m benchmarks.shared_store FOLDER`, with a folder of transcripts.

They are read into a store on a folder that machines share (`file:///…`), then one short session more, then
nothing. Printed as JSON after each: processor seconds, entries of the log, and what the shared folder holds,
in objects and bytes. `docs/scale.md` multiplies these figures.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import invented
from cortex.storage.staging.assistant_folders import find_transcripts

FOLDERS = ("lake", "tables", "published")


def measure(transcripts: Path, scratch: Path) -> dict[str, dict[str, float]]:
    """Return what there was after each of three runs."""
    invented.transcripts(scratch / "more", 1)
    short = min(find_transcripts(scratch / "more"), key=lambda path: path.stat().st_size)
    read = find_transcripts(transcripts)
    figures = {"transcripts": {"files": len(read), "bytes": sum(path.stat().st_size for path in read)}}
    for name, words in (
        ("backfill", ["backfill", str(transcripts)]),
        ("short session", ["backfill", str(short)]),
        ("nothing new", ["run"]),
    ):
        print(f"{name} …", file=sys.stderr, flush=True)
        figures[name] = {"processor seconds": _cortex(scratch, *words), **_counts(scratch / "shared")}
    return figures


def _cortex(scratch: Path, *words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    surroundings = {**os.environ, "HOME": str(scratch), "CORTEX_HOME": (scratch / "shared").as_uri()}
    command = [sys.executable, "-m", "cortex", *words, "--engine", "plain"]
    subprocess.run(command, env=surroundings, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)


def _counts(shared: Path) -> dict[str, float]:
    """Return the log's entries, objects and bytes of each folder, and the last tree's size."""
    counts: dict[str, float] = {"log entries": _number(shared / "log")}
    for folder in FOLDERS:
        sizes = [path.stat().st_size for path in (shared / folder).rglob("*") if path.is_file()]
        counts |= {f"{folder} objects": len(sizes), f"{folder} bytes": sum(sizes)}
    trees = sorted((shared / "trees").iterdir(), key=lambda path: path.stat().st_mtime)
    tree = json.loads(trees[-1].read_bytes())
    return counts | {
        "tree bytes": trees[-1].stat().st_size,
        "tree files": len(tree["files"]),
        "manifest bytes": tree["files"]["runs/manifest.json"][1],
    }


def _number(log: Path) -> int:
    return sum(path.is_file() for path in log.rglob("*"))


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="cortex-shared-") as scratch:
        print(json.dumps(measure(Path(sys.argv[1]), Path(scratch)), indent=1))


if __name__ == "__main__":
    main()
