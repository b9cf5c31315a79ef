"""The folder's own lock: the operating system frees it when its holder dies."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cortex.storage.ground.files import writing_to
from cortex.transforms.errors import StoreBusy


@contextlib.contextmanager
def own_lock(home: Path) -> Iterator[None]:
    """
    Hold the folder's own lock while the block runs.

    An OS file lock on `<home>/runs/lease.lock`: a killed holder loses it at once, the file itself stays and
    means nothing. Raises StoreBusy without waiting when another process holds it.
    """
    from filelock import FileLock, Timeout

    runs = home / "runs"
    with writing_to(home):
        runs.mkdir(parents=True, exist_ok=True)
        lock = FileLock(runs / "lease.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise StoreBusy(
                "another run is writing to this store.",
                "Wait for it to end (`cortex status` shows the last one), then try again.",
            ) from error
    try:
        yield
    finally:
        lock.release()
