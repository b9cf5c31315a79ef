"""Processes of tests: begun without threads of their parent's, told apart by their environment."""

import multiprocessing
from pathlib import Path

# Forked from a process that has imported all of this and has no thread at work. A test process itself cannot
# be forked: once a test has woken the pools of polars, Arrow or DuckDB, a child waits for them without end.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["tests.chaos.crowd", "tests.asking_process", "tests.whole.flows.test_writing", "anthropic"]
)


def processes_of(mark: str) -> set[int]:
    """
    Return the processes that carry `mark` in their environment: those a test started, and theirs.

    A port is listened on by a process: if none is left no port is. Ports are not counted by themselves, as
    those of the whole machine include the servers of tests that run at the same time.
    """
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
        except OSError:
            continue  # ended meanwhile, or not ours
    return found
