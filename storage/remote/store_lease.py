"""
The lease: one run writes at a time; the operating system frees it when its holder dies.

Apart from the store, which loads the table libraries: `status` and `brief` ask for it and need none of them.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cortex.storage.filesystem.files import own_lock
from cortex.storage.filesystem.place import is_copy
from cortex.transforms.errors import StoreBusy


def is_free(home: Path) -> bool:
    """Return whether no run on this machine holds the lease now."""
    if not (home / "runs").is_dir():
        return True
    try:
        with own_lock(home, wait_s=0):
            return True
    except StoreBusy:
        return False


@contextlib.contextmanager
def lease(home: Path) -> Iterator[None]:
    """
    Hold the store's lease while the block runs.

    That of a copy is held where the store is too, and the copy brought in step first. Raises StoreBusy when
    another run holds it; LeaseLost and StoreUnreachable for a copy.
    """
    with own_lock(home):
        if not is_copy(home):
            yield
            return
        from cortex.storage.remote.remote_session import written_elsewhere

        with written_elsewhere(home):
            yield
