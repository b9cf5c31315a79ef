"""Workers on a Dask cluster: what they give, and what is left when some are killed."""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.workers import MARK, kill_until_done, workers_of
from tests.bench import contents, difference, leftovers
from tests.processes import processes_of
from tests.transcripts import decisions, forked

ROOT = Path(__file__).parents[3]
# Fewer where the run is over before. A task is asked again so often when the worker that has it dies; how
# many shards are left to the run depends on how fast workers come up, what comes out does not.
KILLS = 2
SESSIONS = 14
HANGS_AFTER_SECONDS = 480
# Its server comes up late beside other tests; without it the run would have no workers.
PREFECT = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120"}
PROGRAM = """
import sys
import time
from pathlib import Path
from cortex.flows.engines import runs; from cortex.flows import transcript_batches
from cortex.flows.context import Context
from cortex.storage.settings.settings import Settings, WorkerSettings
from tests.bench import NOW, words_for_a_model

if __name__ == "__main__":
    transcript_batches.MEGABYTE = 0  # each session is a shard
    shard_of = transcript_batches._shard_of
    # So that workers are up, and work, for long enough to be killed.
    transcript_batches._shard_of = lambda *args: time.sleep(1) or shard_of(*args)
    settings = Settings(home=Path(sys.argv[1]), workers=WorkerSettings("dask", 2))
    context = Context(settings, words_for_a_model, lambda: NOW)
    runs.stage_all(settings, runs.look_for(settings, [Path(sys.argv[2])]).transcripts)
    report = runs.execute("backfill", context, engine="prefect")
    print(report.engine)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="workers are looked up in /proc")
def test_dask_gives_what_one_process_gives_also_when_workers_are_killed(bench, other):
    talk = decisions("s1")
    talk.write(bench.projects)
    forked(talk.records, "f4").assistant("[MEMORY: pattern] One queue a poller.").write(bench.projects)
    for number in range(SESSIONS):
        decisions(f"r{number}", cwd="/home/dev/reef").write(bench.projects)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(bench.home), str(bench.projects)],
        env={**os.environ, **PREFECT, MARK: str(bench.home), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    hung = threading.Timer(HANGS_AFTER_SECONDS, process.kill)
    hung.start()
    killed = kill_until_done(process, bench.home, random.Random(1), KILLS)
    output, _ = process.communicate(timeout=10)
    hung.cancel()
    assert (output, process.returncode) == ("prefect\n", 0)
    assert 0 < killed <= KILLS
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []
    assert workers_of(bench.home, 0) == [] and processes_of(f"{MARK}={bench.home}") == set()
