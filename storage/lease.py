"""The lease: one run writes at a time; the operating system frees it when its holder dies."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cortex.storage.files import writing_to
from cortex.storage.remote.open_sessions import is_copy
from cortex.transforms.errors import StoreBusy


@contextlib.contextmanager
def lease(home: Path) -> Iterator[None]:
    """
    Hold the store's lease while the block runs.

    That of a copy is held where the store is too, and the copy brought in step first. Raises StoreBusy when
    another run holds it, without waiting where that is seen at once; LeaseLost and StoreUnreachable for a
    copy.
    """
    with own_lock(home):
        if not is_copy(home):
            yield
            return
        from cortex.storage.remote.session import written_elsewhere

        with written_elsewhere(home):
            yield


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
