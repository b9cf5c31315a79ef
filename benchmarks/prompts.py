"""
The prompt hook timed: `python -m benchmarks.prompts [--rows 10000 100000] [--runs 1000]`.

A project of made facts, passages and commands is indexed as a run leaves it; then the hook is started as the
client starts it, a process for each message, and timed from its start to its end. Bare processes that do
nothing are timed in between: what the hook costs is the difference.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import invented
from cortex.hooks import hook
from cortex.storage.published.published import Published
from cortex.storage.settings.reference import read_policy, word_ranks
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.search import index_text, settings_document

ROOT = Path(__file__).resolve().parents[1]
# Milliseconds that 95 of 100 processes may take on a quiet machine, by the rows of the project.
MUST = {10_000: 80, 100_000: 150}
# Of ten rows of a project one is a fact.
FACTS_SHARE = 10


@dataclass(frozen=True)
class Timed:
    """
    Milliseconds of each process of the hook, of each that does nothing, and of the processor (`busy`).

    Beside them how many answered and how many gave up, and what the index took.
    """

    ours: list[float]
    bare: list[float]
    busy: list[float]
    answered: int
    late: int
    index_bytes: int
    written_seconds: float


def index_rows(home: Path, count: int) -> float:
    """Index `count` made rows of the made project below `home`; return the seconds that it took."""
    policy = read_policy(None)
    facts = invented.memories(count // FACTS_SHARE)
    passages = invented.passages(count - facts.num_rows)
    tables = LanceTables(home)
    assert tables.index is not None
    worded = [(name, _with_text(rows)) for name, rows in (("memories", facts), ("passages", passages))]
    begun = time.perf_counter()
    for name, rows in worded:
        tables.index.replace(invented.PROJECT, name, rows, range(rows.num_rows))
    taken = time.perf_counter() - begun
    tables.settle_search(settings_document(policy), [*word_ranks().items()])
    return taken


def timed(count: int, runs: int) -> Timed:
    """Time `runs` processes of the hook over `count` rows, and as many that do nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "home")
        written = index_rows(home, count)
        Published(home).publish_projects({scratch: invented.PROJECT})
        surroundings = {"CORTEX_HOME": str(home), "PATH": os.environ["PATH"]}
        launched = ["sh", str(ROOT / "hooks" / "run.sh"), "user-prompt-submit"]
        bare = ["sh", "-c", "python3 -I -S -c pass; exit 0"]
        ours, none, busy, answered = [], [], [], 0
        # One by one in turn: a machine that gets busier slows both.
        for number, payload in enumerate(_payloads(scratch, runs + 1)):
            before = _busy()
            milliseconds, output = _run_once(launched, payload, surroundings)
            spent = (_busy() - before) * 1e3
            nothing, _ = _run_once(bare, b"{}", surroundings)
            if number:  # the first one fills the caches
                ours.append(milliseconds)
                none.append(nothing)
                busy.append(spent)
                answered += bool(output)
        late = home / "runs" / hook.LATE_PROMPTS
        size = (home / "tables" / "search.sqlite").stat().st_size
        return Timed(ours, none, busy, answered, late.stat().st_size if late.exists() else 0, size, written)


def _with_text(rows: pa.Table) -> pa.Table:
    texts = pa.array([index_text(row) for row in rows.to_pylist()], pa.string())
    return rows.append_column("index_text", texts)


def _payloads(folder: str, count: int) -> Iterator[bytes]:
    # A session of its own for each: what was shown once is not shown again.
    for number, question in enumerate(invented.questions(count)):
        payload = {"session_id": f"s{number}", "cwd": folder, "prompt": question}
        yield json.dumps({**payload, "transcript_path": "/t/s.jsonl"}).encode()


def _busy() -> float:
    """Return the seconds of the processor that ended processes took: on a shared machine a truer figure."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run_once(command: list[str], given: bytes, surroundings: dict[str, str]) -> tuple[float, bytes]:
    begun = time.perf_counter()
    done = subprocess.run(command, input=given, env=surroundings, capture_output=True, check=True)
    return (time.perf_counter() - begun) * 1e3, done.stdout


def main() -> None:
    """Time the hook at each size and print a line of figures for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=sorted(MUST))
    parser.add_argument("--runs", type=int, default=1_000)
    chosen = parser.parse_args()
    for count in chosen.rows:
        measured = timed(count, chosen.runs)
        figures = [
            f"{name} p50 {np.percentile(values, 50):.0f} p95 {np.percentile(values, 95):.0f} ms"
            for name, values in (
                ("hook", measured.ours),
                ("bare process", measured.bare),
                ("processor", measured.busy),
            )
        ]
        must = f" (must: {MUST[count]})" if count in MUST else ""
        print(
            f"{count:,} rows, {chosen.runs:,} runs{must}: {'; '.join(figures)};"
            f" {measured.answered} answered, {measured.late} gave up;"
            f" index {measured.index_bytes / 1e6:.0f} MB;"
            f" load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
