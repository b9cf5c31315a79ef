"""
One process against workers, and workers that are killed: `python -m benchmarks.workers`.

Options: `--workers 4 --kills 200 --runner dask --copies 8 --chars 20000 --transcripts FOLDER`. Made
transcripts (or those of FOLDER) are taken into a new store by one process, and into another by workers under
Prefect. Then into new ones again while workers that are up are killed (SIGKILL) at random moments, until that
number of kills is reached. Compared is all that a store holds: a hash of the rows of each table of the lake,
its vectors among them, of each table of each scope, of each brief; so nothing is lost, doubled or otherwise.

Printed as JSON: seconds by the wall and of processors, those of the workers too.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks import invented
from benchmarks.served_nightly import ask, free_port
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.lake.lake import LAKE_TABLES
from cortex.storage.settings.settings import Settings, WorkerSettings
from cortex.storage.store import Store

SCOPED = ("memories", "edges", "passages")
MARK = "CORTEX_BENCHMARK_WORKERS"
# On average; a worker then has done between nothing and several shards.
SECONDS_BETWEEN_KILLS = 1.0
LOOK_SECONDS = 0.2
# A worker listens once all is imported, and then only has to make itself known to the scheduler. One that is
# killed before that is not started again, or keeps the whole cluster from starting.
UP_AFTER_SECONDS = 2.0
LISTENS = "0A"


def fingerprints(home: Path) -> dict[str, str]:
    """Return a hash of the rows of each table, whatever their order, and of each brief."""
    store = Store(home)
    rows: dict[str, list[Any]] = {
        name: store.lake.read(table).to_pylist() for name, table in LAKE_TABLES.items()
    }
    for scope in store.tables.scopes():
        for name in SCOPED:
            rows[f"{scope}/{name}"] = store.tables.open(scope, name).read().to_pylist()
        rows[f"{scope}/brief"] = [store.published.brief(scope)]
    return {
        name: hashlib.sha256("\n".join(sorted(map(repr, of_table))).encode()).hexdigest()
        for name, of_table in sorted(rows.items())
        if of_table
    }


def work(home: Path, transcripts: Path, runner: str, workers: int) -> None:
    """Take the transcripts in, in this process or with workers, and print what that took as JSON."""
    settings = Settings(home=home, workers=WorkerSettings(runner, workers))
    runs.stage_all(settings, runs.look_for(settings, [transcripts]).transcripts)
    begun = time.perf_counter()
    engine = "plain" if runner == "none" else "prefect"
    report = runs.execute("backfill", Context(settings, clock=lambda: invented.NOW), engine=engine)
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    outcome = {
        "engine": report.engine,
        "seconds": round(time.perf_counter() - begun, 1),
        "processor seconds of the run": round(own.ru_utime + own.ru_stime, 1),
        "processor seconds of its workers": round(children.ru_utime + children.ru_stime, 1),
        "seconds of extract": round(sum(e.seconds for e in report.stages if e.stage == "extract"), 1),
        "seconds of embed": round(sum(e.seconds for e in report.stages if e.stage == "embed"), 1),
        "notes": report.notes,
    }
    print(json.dumps(outcome), flush=True)


def start(
    home: Path, transcripts: Path, runner: str, workers: int, api: str, shard_mb: float
) -> "subprocess.Popen[str]":
    """Start `work` as a process of its own, with shards of that many megabytes."""
    policy = home / "policy"
    policy.mkdir(parents=True)
    (policy / "thresholds.csv").write_text(
        f"name,value,unit,read_by,why\nshard_megabytes,{shard_mb},megabytes,backfill,benchmark\n"
    )
    command = [sys.executable, "-m", "benchmarks.workers", "--work", str(home), "--runner", runner]
    command += ["--workers", str(workers), "--transcripts", str(transcripts)]
    surroundings = {
        **os.environ,
        MARK: str(home),
        "PREFECT_API_URL": api,
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
    }
    return subprocess.Popen(
        command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def outcome_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Wait for a started `work` and return what it printed."""
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the run ended with {process.returncode}")
    outcome: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return outcome


def workers_of(home: Path, runner: int) -> list[int]:
    """Return the processes that `runner` started to work on shards, those that still start too."""
    started = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_marked = f"{MARK}={home}".encode() in (folder / "environ").read_bytes().split(b"\0")
            is_worker = b"spawn_main" in (folder / "cmdline").read_bytes()
        except OSError:  # ended meanwhile
            continue
        if is_marked and is_worker and int(folder.name) != runner:
            started.append(int(folder.name))
    return started


def listening(processes: Iterable[int]) -> set[int]:
    """Return those of the processes that listen on a port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == LISTENS}
    listeners = set()
    for process in processes:
        with suppress(OSError):  # ended meanwhile
            if any(str(each.readlink()) in sockets for each in Path(f"/proc/{process}/fd").iterdir()):
                listeners.add(process)
    return listeners


def kill_until_done(process: "subprocess.Popen[str]", home: Path, chance: random.Random, limit: int) -> int:
    """Kill workers of a started `work` that are up, at random moments until it ends; return how many."""
    killed, since = 0, dict[int, float]()
    next_kill = 0.0
    while process.poll() is None:
        time.sleep(LOOK_SECONDS)
        if killed == limit:
            continue
        now = time.monotonic()
        since = {each: since.get(each, now) for each in listening(workers_of(home, process.pid))}
        up = [each for each, first in since.items() if now - first >= UP_AFTER_SECONDS]
        if up and now >= next_kill:
            next_kill = now + chance.expovariate(1 / SECONDS_BETWEEN_KILLS)
            with suppress(ProcessLookupError):
                os.kill(chance.choice(up), signal.SIGKILL)
                killed += 1
    return killed


@contextmanager
def prefect_server(folder: Path) -> Iterator[str]:
    """Serve Prefect's API from a scratch folder; yield its address."""
    port = free_port()
    surroundings = {**os.environ, "PREFECT_HOME": str(folder), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
    api = f"http://127.0.0.1:{port}/api"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=surroundings, **quiet) as server:
        try:
            for _ in range(240):
                try:
                    ask(api, "/flows/filter", {})
                    break
                except OSError:
                    time.sleep(1)
            yield api
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def compared(first: dict[str, str], second: dict[str, str]) -> list[str]:
    """Return the tables and briefs that two stores say differently."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def measure(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what each part showed."""
    transcripts: Path = options.transcripts or folder / "transcripts"
    if not options.transcripts:
        invented.transcripts(transcripts, options.copies, projects=3, chars=options.chars)
    size = sum(path.stat().st_size for path in transcripts.rglob("*.jsonl"))
    with prefect_server(folder / "prefect") as api:
        alone = outcome_of(start(folder / "alone", transcripts, "none", 0, api, 100))
        expected = fingerprints(folder / "alone")
        yield {"MB": round(size / 1e6, 1), "one process": alone, "tables and briefs": len(expected)}
        shard_mb = size / 1e6 / (3 * options.workers)
        by_workers = outcome_of(
            start(folder / "beside", transcripts, options.runner, options.workers, api, shard_mb)
        )
        different = compared(expected, fingerprints(folder / "beside"))
        yield {f"{options.workers} workers": by_workers, "different from one process": different}
        chance, killed, number = random.Random(1), 0, 0
        while killed < options.kills:
            number += 1
            home = folder / f"killed{number}"
            process = start(home, transcripts, options.runner, options.workers, api, size / 1e6 / 40)
            kills = kill_until_done(process, home, chance, options.kills - killed)
            outcome, killed = outcome_of(process), killed + kills
            time.sleep(2)
            yield {
                "kills": kills,
                "of": killed,
                "seconds": outcome["seconds"],
                "different from one process": compared(expected, fingerprints(home)),
                "notes": outcome["notes"],
                "workers left": len(workers_of(home, 0)),
            }


def main() -> None:
    """Print each part as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--runner", default="dask")
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--chars", type=int, default=20_000)
    parser.add_argument("--transcripts", type=Path)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.transcripts, options.runner, options.workers)
        return
    with tempfile.TemporaryDirectory(prefix="cortex-workers-") as scratch:
        for part in measure(Path(scratch), options):
            print(json.dumps(part), flush=True)


if __name__ == "__main__":
    main()
