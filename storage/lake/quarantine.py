"""Moves lake files that cannot be used out of the store, without deleting them."""

import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from cortex.storage.ground.files import sync_folder, writing_to


def move_beside(home: Path, paths: Iterable[str], at: datetime) -> Path | None:
    """
    Move lake files to `<home>.set-aside-<time>/lake/`; return that folder, None without files.

    Not into the store: what a person forgets must be gone from all of it, and what cannot be read cannot be
    searched. Only under the lease. Raises StoreNotWritable.
    """
    listed = sorted(paths)
    if not listed:
        return None
    folder = home.with_name(f"{home.name}.set-aside-{at:%Y%m%dT%H%M%S}")
    with writing_to(home.parent):
        for path in listed:
            target = folder / "lake" / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(home / "lake" / path, target)
            sync_folder(target.parent)
    return folder
