"""
A crowd on one store: `python -m tests.chaos.crowd --seconds 60`.

Eight processes stage transcripts, run, remember and recall at once, each as fast as it can. Then one run
takes in what is left. Everything that any of them said must be there once.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from cortex.transforms.schemas import TURNS

os.environ.setdefault("LANCEDB_LOG", "error")

import lancedb  # noqa: F401  (imported before forking: it takes a second)

from cortex.flows.recall import search_store
from cortex.storage.reference import read_policy
from cortex.transforms.errors import StoreBusy
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import GLOBAL_SCOPE
from tests.chaos.harness import in_child, unnamed_files
from tests.flows.conftest import NOW, Bench, leftovers
from tests.rows import entry
from tests.transcripts import decisions

PROCESSES = 8


def one_of_the_crowd(folder: Path, number: int, seconds: float) -> None:
    """Stage, run, remember and recall in turn until the time is over; note what was said in a file."""
    bench = Bench(folder / "home", folder / "projects")
    said = (folder / f"said-{number}").open("a", encoding="utf-8")
    ends, turn = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        turn += 1
        name = f"p{number}t{turn}"
        bench.stage(
            decisions(name, start=NOW + timedelta(minutes=turn, seconds=number)).write(bench.projects)
        )
        fact = f"Buoy {name} is painted in colour number {number * 1000 + turn}"
        payload = {"text": fact, "memory_type": "pattern", "category": "global"}
        known = memory_id(GLOBAL_SCOPE, "pattern", fact)
        when = NOW + timedelta(seconds=number, milliseconds=turn)
        bench.store.journal.write(entry("remember", GLOBAL_SCOPE, payload, recorded_at=when, memory_id=known))
        print(fact, file=said, flush=True)
        try:
            bench.run()
        except StoreBusy:
            policy = read_policy(None)
            scopes = [*bench.store.tables.scopes()]
            search_store(
                bench.store.tables, fact, scopes=scopes, policy=policy, embedder=None, limit=3, now=NOW
            )


def crowd(folder: Path, seconds: float) -> dict[str, int]:
    """Let the crowd loose, run once more; return what was said, is missing, doubled, left behind."""
    children = [in_child(one_of_the_crowd, folder, number, seconds) for number in range(PROCESSES)]
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    verdict = folder / "verdict"
    _, status = os.waitpid(in_child(_judge, folder, verdict), 0)
    if status:
        raise RuntimeError("the store cannot be read after the crowd")
    said, missing, doubled, left = map(int, verdict.read_text().split())
    return {"said": said, "missing": missing, "doubled": doubled, "leftovers": left, "failed": failed}


def _judge(folder: Path, verdict: Path) -> None:
    bench = Bench(folder / "home", folder / "projects")
    bench.run()
    said = [line for file in sorted(folder.glob("said-*")) for line in file.read_text().splitlines()]
    texts = [row["text"] for row in bench.store.tables.open(GLOBAL_SCOPE, "memories").read().to_pylist()]
    turns = bench.store.lake.read(TURNS)["turn_id"].to_pylist()
    sessions = {path.stem for path in bench.projects.rglob("*.jsonl")}
    known = set(bench.store.lake.read(TURNS)["session_id"].to_pylist())
    missing = len(set(said) - set(texts)) + len(sessions - known)
    doubled = _repeated(texts) + _repeated(turns)
    left = len(leftovers(bench.home)) + len(unnamed_files(bench.home))
    verdict.write_text(f"{len(said)} {missing} {doubled} {left}")


def _repeated(values: Iterable[object]) -> int:
    listed = list(values)
    return len(listed) - len(set(listed))


def main() -> None:
    """Print the tally; leave with 1 if anything is missing, doubled or left."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    with tempfile.TemporaryDirectory(prefix="cortex-crowd-") as scratch:
        told = crowd(Path(scratch), parser.parse_args().seconds)
    print("crowd: " + " ".join(f"{name}={count}" for name, count in told.items()))
    sys.exit(any(count for name, count in told.items() if name != "said"))


if __name__ == "__main__":
    main()
