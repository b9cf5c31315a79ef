"""The store as one value: its folder and what lies in it."""

import shutil
from datetime import datetime
from functools import cached_property
from pathlib import Path

from cortex.storage.files import remove_parts, writing_to
from cortex.storage.journal import Journal
from cortex.storage.lake import Lake
from cortex.storage.projects import ProjectBook
from cortex.storage.published import Published
from cortex.storage.staging import Staging
from cortex.storage.tables import Tables
from cortex.storage.told import TellingBook

# Where a rebuild makes tables before it puts them in place; a killed one leaves it behind.
REBUILDING = "rebuilding"


class Store:
    """
    Everything at rest below one folder: staging, lake, journal, tables, published files.

    Opening reads the manifest only. Writing belongs under `cortex.storage.lease.lease(store.runs)`,
    bar `journal.write` and `staging.stage`, which add files and never wait.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runs = home / "runs"
        self.lake = Lake(home)
        self.journal = Journal(home, self.lake)
        self.staging = Staging(home)
        self.tables = Tables(home)
        self.published = Published(home)
        self.telling = TellingBook(home)

    @cached_property
    def projects(self) -> ProjectBook:
        """The projects the store has seen."""
        return ProjectBook(self.journal)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever committed to the store."""
        return self.lake.manifest.generation == 0

    def mend(self) -> int:
        """Remove what a killed run left half written; return how many files. Only under the lease."""
        with writing_to(self.home):
            folders = (self.lake.root, self.runs, self.published.root)
            shutil.rmtree(self.home / REBUILDING, ignore_errors=True)
            removed = sum(remove_parts(folder) for folder in folders if folder.is_dir())
            return removed + self.staging.sweep_temp()


def start_of_day(now: datetime) -> datetime:
    """Return midnight of `now`'s UTC day: ageing by whole days, a second run today changes nothing."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
