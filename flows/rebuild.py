"""Rebuild: the tables made anew from the lake and put in place of the live ones, kill-safe (law 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cortex.flows.embed import embed
from cortex.flows.guard import guard
from cortex.flows.report import RunReport
from cortex.flows.run import Run
from cortex.flows.stages import decay, link, render
from cortex.storage.notes import REPLACED_BY, Notes
from cortex.storage.store import DATABASE, Store
from cortex.storage.tables import StoredTables
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


def afresh(run: Run, store: Store, tables: StoredTables, now: datetime | None = None) -> Afresh:
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
        tables = run.store.rebuilt_tables()
        tables.remove()
        made = afresh(run, Store(run.store.home), tables)
        make_tables(made)
        run.store.lake.manifest = made.store.lake.manifest  # it may have embedded texts that had no vector
        run.failed |= made.failed
        run.report.breaches += made.report.breaches
        wanted = {*run.store.tables.scopes(), *tables.scopes()} - made.failed
        scopes = sorted(wanted if only is None else wanted & set(only))
        _forget_made(run, scopes)
        row.rows_out = sum(map(tables.put_in_place, scopes))
        run.store.lake.note(made.noted.of_scopes(scopes).in_place_of(run.store.lake.notes))
        tables.remove()
        row.note = f"{len(scopes)} scopes"
    render(run)


def _forget_made(run: Run, scopes: Sequence[str]) -> None:
    """Forget that these scopes' tables and what is published of them were made."""
    with run.store.lake.change() as change:
        left = change.notes.without_outputs(REPLACED_BY, scopes)
        change.notes = left.without_outputs({DATABASE.stage}, {DATABASE.scope})
