"""Processes told apart by their environment, where other tests start their own on the same machine."""

from pathlib import Path


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
