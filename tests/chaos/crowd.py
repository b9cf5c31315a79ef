"""
A crowd on one store: `python -m tests.chaos.crowd --seconds 60`.

Eight processes stage transcripts, run, remember and recall at once, each as fast as it can. Then one run
takes in what is left. Everything that any of them said must be there once, and nothing set aside.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from cortex.transforms.schemas import TURNS

os.environ.setdefault("LANCEDB_LOG", "error")

from cortex.flows.recalling.recall_search import search_store
from cortex.hooks.ticket import QUARANTINED
from cortex.storage.settings.reference import read_policy
from cortex.transforms.errors import StoreBusy
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import GLOBAL_SCOPE
from tests.bench import NOW, Bench, leftovers
from tests.chaos.harness import exit_code_of, in_child, unnamed_files
from tests.rows import entry
from tests.transcripts import decisions

CROWD = 8


def one_of_the_crowd(folder: Path, number: int, seconds: float) -> None:
    """Stage, run, remember and recall in turn until the time is over; note what was said in a file."""
    bench = Bench(folder / "home", folder / "projects")
    record = (folder / f"facts-{number}").open("a", encoding="utf-8")
    ends, turn = time.monotonic() + seconds, 0
    while turn < 2 or time.monotonic() < ends:  # a busy machine does not come to a second turn in time
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
        print(fact, file=record, flush=True)
        try:
            bench.run()
        except StoreBusy:
            policy = read_policy(None)
            scopes = [*bench.store.tables.scopes()]
            search_store(bench.store.tables, fact, scopes=scopes, policy=policy, embedder=None, limit=3)


@dataclass(frozen=True)
class Crowded:
    """How many facts were said, and what is not as it must be, by name: facts, sessions, ids, files."""

    facts: int
    missing: list[str]
    doubled: list[str]
    leftovers: list[str]
    set_aside: list[str]
    failed: list[str]

    @property
    def faults(self) -> dict[str, list[str]]:
        """What must be empty and is not."""
        return {name: value for name, value in vars(self).items() if isinstance(value, list) and value}


def crowd(folder: Path, seconds: float) -> Crowded:
    """Let the crowd loose, run once more; return what was said and what is wrong."""
    children = {f"process {n}": in_child(one_of_the_crowd, folder, n, seconds) for n in range(CROWD)}
    failed = [name for name, child in children.items() if exit_code_of(child)]
    verdict = folder / "verdict"
    if exit_code_of(in_child(_judge, folder, verdict)):
        raise RuntimeError("the store cannot be read after the crowd")
    return Crowded(**json.loads(verdict.read_text()), failed=failed)


def _judge(folder: Path, verdict: Path) -> None:
    bench = Bench(folder / "home", folder / "projects")
    bench.run()
    facts = [line for file in sorted(folder.glob("facts-*")) for line in file.read_text().splitlines()]
    texts = [row["text"] for row in bench.store.tables.open(GLOBAL_SCOPE, "memories").read().to_pylist()]
    turns = bench.store.lake.read(TURNS)["turn_id"].to_pylist()
    sessions = {path.stem for path in bench.projects.rglob("*.jsonl")}
    known = set(bench.store.lake.read(TURNS)["session_id"].to_pylist())
    quarantined = sorted(path.name for path in (bench.home / "staging" / QUARANTINED).glob("*"))
    result = {
        "facts": len(facts),
        "missing": sorted({*facts} - {*texts}) + sorted(sessions - known),
        "doubled": _repeated(texts) + _repeated(turns),
        "leftovers": leftovers(bench.home) + unnamed_files(bench.home),
        "set_aside": quarantined,
    }
    verdict.write_text(json.dumps(result))


def _repeated(values: Iterable[str]) -> list[str]:
    return sorted(value for value, count in Counter(values).items() if count > 1)


def main() -> None:
    """Print the tally and what is wrong; leave with 1 if anything is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    with tempfile.TemporaryDirectory(prefix="cortex-crowd-") as scratch:
        result = crowd(Path(scratch), parser.parse_args().seconds)
    counts = (
        f"{name}={value if isinstance(value, int) else len(value)}" for name, value in vars(result).items()
    )
    print("crowd: " + " ".join(counts))
    for name, values in result.faults.items():
        print(*(f"  {name}: {value}" for value in values), sep="\n")
    sys.exit(1 if result.faults else 0)


if __name__ == "__main__":
    main()
