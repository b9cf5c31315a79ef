"""Rebuild: the tables made anew from the lake and put in place of the live ones, kill-safe (law 1)."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cortex.flows.embed import embed
from cortex.flows.guard import guard
from cortex.flows.report import RunReport
from cortex.flows.run import Run
from cortex.flows.stages import decay, link, render
from cortex.storage.files import writing_to
from cortex.storage.notes import REPLACED_BY, Notes
from cortex.storage.store import DATABASE, REBUILDING, Store
from cortex.storage.tables import PROJECTED, Tables
from cortex.transforms.memory.lifecycle import Aged


@dataclass
class Afresh(Run):
    """A run for which no stage has made anything yet; what it makes is noted once it is in place."""

    noted: Notes = field(default_factory=Notes)

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether to leave a scope alone: only where its audit failed."""
        return scope in self.failed

    def note_findings(self, scope: str, aged: Aged) -> None:
        """Note nothing: the lake is read here, and a run that follows finds the same."""

    @property
    def notes(self) -> Notes:
        """The notes that `note` replaces: those of this run alone."""
        return self.noted

    def note(self, notes: Notes) -> None:
        """Keep the notes until the output is in place."""
        if not self.lacks_vectors:
            self.noted = notes


def afresh(run: Run, store: Store, tables: Tables, now: datetime | None = None) -> Afresh:
    """Return a run over `store` that makes everything anew into `tables`, as of `now`."""
    store.tables = tables
    report = RunReport("rebuild", "plain", run.now)
    return Afresh(store, run.settings, run.policy, now or run.now, report, run.embedder, run.progress)


def make_tables(run: Run) -> None:
    """Make passages, edges and memories of every scope, with the stages that every run uses."""
    for stage in (embed, link, decay):
        stage(run)


def rebuild(run: Run, only: Sequence[str] | None = None) -> None:
    """
    Make the tables from the lake beside the live ones, swap them in, publish anew.

    Vectors come from the lake; only texts without one are embedded. Killed before the swap nothing has
    changed; killed within it, the notes of what was made are gone and the next run makes the rest again.
    A scope whose audit fails keeps its live tables. Raises LossRefused, before anything is replaced, where
    much of what is shown would be gone. `only` names the scopes to replace (default: all).
    """
    with run.report.stage("rebuild") as row:
        run.store.journal.take_in()
        guard(run)
        beside = run.store.home / REBUILDING
        with writing_to(run.store.home):
            shutil.rmtree(beside, ignore_errors=True)
        made = afresh(run, Store(run.store.home), Tables(beside))
        make_tables(made)
        run.store.lake.manifest = made.store.lake.manifest  # it may have embedded texts that had no vector
        run.failed |= made.failed
        run.report.breaches += made.report.breaches
        wanted = {*run.store.tables.scopes(), *made.store.tables.scopes()} - made.failed
        scopes = sorted(wanted if only is None else wanted & set(only))
        _forget_made(run, scopes)
        row.rows_out = sum(_swap(run, beside, scope) for scope in scopes)
        run.store.lake.note(made.noted.of_scopes(scopes).in_place_of(run.store.lake.notes))
        with writing_to(run.store.home):
            shutil.rmtree(beside, ignore_errors=True)
        row.note = f"{len(scopes)} scopes"
    render(run)


def _forget_made(run: Run, scopes: Sequence[str]) -> None:
    """Forget that these scopes' tables and what is published of them were made."""
    with run.store.lake.change() as change:
        left = change.notes.without_outputs(REPLACED_BY, scopes)
        change.notes = left.without_outputs({DATABASE.stage}, {DATABASE.scope})


def _swap(run: Run, beside: Path, scope: str) -> int:
    """Put a scope's fresh datasets in place and return their rows; between two renames there are none."""
    live, fresh, old = run.store.tables, beside / "tables" / scope, beside / "old" / scope
    with writing_to(run.store.home):
        old.mkdir(parents=True, exist_ok=True)
        (live.root / scope).mkdir(parents=True, exist_ok=True)
        for name in (f"{table}.lance" for table in PROJECTED):  # what else is there is not ours
            if (live.root / scope / name).exists():
                (live.root / scope / name).rename(old / name)
            if (fresh / name).is_dir():
                (fresh / name).rename(live.root / scope / name)
    return sum(live.open(scope, name).count() for name in PROJECTED)
