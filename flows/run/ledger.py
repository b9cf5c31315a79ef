"""Which outputs were made from which inputs: in the store's manifest, or for a rebuild elsewhere."""

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from cortex.flows.context.outcome import Outcome
from cortex.storage.lake.notes import ManifestNotes, Output
from cortex.storage.store import Store
from cortex.transforms.schemas import values


class Ledger(Protocol):
    """Where a run looks up and notes what stages made; a stage makes nothing twice of the same inputs."""

    @property
    def notes(self) -> ManifestNotes:
        """The notes that `note` replaces."""

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether `stage` made this of these inputs before, or is to leave a failed scope alone."""

    def has_made_any(self, stage: str, scope: str, fingerprints: Iterable[str]) -> bool:
        """Return whether what `stage` made last of a scope, and what is there of it, is of one of these."""

    def note_output(
        self, stage: str, scope: str, fingerprint: str, notes: ManifestNotes | None = None
    ) -> None:
        """Note that it did now, on top of `notes` (default: the present ones)."""

    def note(self, notes: ManifestNotes) -> None:
        """Keep notes on what was made."""

    def note_findings(self, entries: pa.Table) -> list[str]:
        """Journal entries of what ageing found weak, or strong again; return the ids of those that count."""


class StoreLedger:
    """The notes of the store's manifest."""

    def __init__(self, store: Store, outcome: Outcome) -> None:
        self._store, self._outcome = store, outcome

    @property
    def notes(self) -> ManifestNotes:
        """The notes of the last commit."""
        return self._store.lake.notes

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether that is noted and the output is there, or the scope failed."""
        if scope in self._outcome.failed:
            return True
        is_noted = self.notes.outputs.get(Output(stage, scope)) == fingerprint
        return is_noted and self._store.has_output(stage, scope)

    def has_made_any(self, stage: str, scope: str, fingerprints: Iterable[str]) -> bool:
        """Return whether one of them is noted and the output is there."""
        noted = self.notes.outputs.get(Output(stage, scope))
        if noted is None or not self._store.is_output_there(stage, scope):
            return False
        return noted in fingerprints

    def note_output(
        self, stage: str, scope: str, fingerprint: str, notes: ManifestNotes | None = None
    ) -> None:
        """Note that it did."""
        self.note(_noted(self._store, notes or self.notes, Output(stage, scope), fingerprint))

    def note(self, notes: ManifestNotes) -> None:
        """Note what was made; a stage's notes are committed together, at its end."""
        self._store.lake.note_later(notes)

    def note_findings(self, entries: pa.Table) -> list[str]:
        """Commit them to the journal."""
        if entries.num_rows:
            self._store.journal.commit(entries)
        return values(entries, "entry_id")


class FreshLedger:
    """The notes of outputs rebuilt from nothing; they count once these outputs are in place."""

    def __init__(self, store: Store, outcome: Outcome) -> None:
        self._store, self._outcome = store, outcome
        self.notes = ManifestNotes()

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether to leave a scope alone: only if its audit failed."""
        return scope in self._outcome.failed

    def has_made_any(self, stage: str, scope: str, fingerprints: Iterable[str]) -> bool:
        """Return that it has not: what is made here follows from the lake alone."""
        return False

    def note_output(
        self, stage: str, scope: str, fingerprint: str, notes: ManifestNotes | None = None
    ) -> None:
        """Keep a note of it."""
        self.note(_noted(self._store, notes or self.notes, Output(stage, scope), fingerprint))

    def note(self, notes: ManifestNotes) -> None:
        """Keep the notes."""
        self.notes = notes

    def note_findings(self, entries: pa.Table) -> list[str]:
        """Note nothing: the lake is read here, and a run that follows finds the same."""
        return []


def _noted(store: Store, notes: ManifestNotes, output: Output, fingerprint: str) -> ManifestNotes:
    """Return `notes` once `output` was made, or nothing of it."""
    return notes.with_output(output, fingerprint, is_empty=not store.is_output_there(*output))
