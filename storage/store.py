"""The store as one value: its folder and what is in it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from cortex.storage.filesystem.files import remove_temporaries, writing_to
from cortex.storage.lake.journal import CallLog, Journal
from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import Output
from cortex.storage.projects.projects import ProjectRegister
from cortex.storage.published.published import Published
from cortex.storage.published.shown_lines import ShownLinesRegister
from cortex.storage.staging.staging import Staging
from cortex.storage.tables import search_file
from cortex.storage.tables.lance_tables import LanceTables, LanceTablesInMemory, RebuiltTables
from cortex.storage.tables.search_file import DATABASE as DATABASE
from cortex.storage.tables.search_file import TABLE_OF
from cortex.storage.tables.tables import GrowingTables, StoredTables


class Store:
    """
    Everything at rest below one folder: staging, lake, journal, tables, published files.

    Opening reads the manifest only. Writing belongs under `cortex.storage.remote.store_lease.lease(home)`,
    bar `journal.write`, `calls.write` and `staging.stage`, which add files and never wait.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runs = home / "runs"
        self.lake = Lake(home)
        self.journal = Journal(home, self.lake)
        self.calls = CallLog(self.lake)
        self.staging = Staging(home)
        self.tables: StoredTables = LanceTables(home)
        self.published = Published(home)
        self.shown_lines = ShownLinesRegister(home)

    @cached_property
    def projects(self) -> ProjectRegister:
        """The projects the store has seen."""
        return ProjectRegister(self.journal)

    def rebuilt_tables(self) -> RebuiltTables:
        """Return the place next to the live tables in which their replacements are made."""
        return RebuiltTables(LanceTables(self.home))

    def tables_in_memory(self, *, is_searched: bool = True) -> StoredTables:
        """Return empty tables of this process, which are nowhere on disk, and searched like others or not."""
        return LanceTablesInMemory(is_searched=is_searched)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever committed to the store."""
        return self.lake.manifest.generation == 0

    def is_output_there(self, stage: str, scope: str) -> bool:
        """Return whether what a stage made for a scope is on disk."""
        return search_file.is_output_there(self.home, Output(stage, scope))

    def has_output(self, stage: str, scope: str) -> bool:
        """Return whether what a stage noted as made is there, or was nothing to begin with."""
        return search_file.has_output(self.home, self.lake.notes, Output(stage, scope))

    def check_projections(self) -> None:
        """Raise TablesDamaged where tables or published files are gone that a run noted as made."""
        search_file.check_projections(self.home, self.lake.notes)

    def note_emptied(self, scope: str) -> None:
        """Note that a scope's tables without rows are not there, once a purge has removed them."""
        notes = self.lake.notes
        outputs = [Output(stage, scope) for stage in TABLE_OF if not self.is_output_there(stage, scope)]
        empty = {output: notes.outputs[output] for output in outputs if output in notes.outputs}
        self.lake.note(replace(notes, empty={**notes.empty, **empty}))

    def repair(self) -> int:
        """Remove what a killed run left half written; return how many files. Only under the lease."""
        with writing_to(self.home):
            self.rebuilt_tables().remove()
            removed = remove_temporaries(self.home) + self.lake.remove_unfinished()
            return removed + self.staging.sweep_links(self.lake.manifest.cursors)


@contextmanager
def temporary_tables() -> Iterator[GrowingTables]:
    """Yield empty tables outside any store, on disk and gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="cortex-tables-") as folder:
        yield LanceTables(Path(folder))


def start_of_day(now: datetime) -> datetime:
    """Return midnight of `now`'s UTC day: ageing by whole days, a second run today changes nothing."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
