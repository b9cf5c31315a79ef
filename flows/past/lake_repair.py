"""Repair of the lake on request: a manifest made from its files, or files left out that cannot be used."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.run_report import RunReport
from cortex.flows.extracting.extract_transcripts import events_of
from cortex.flows.reading.duplicate_turns import in_first_place
from cortex.flows.run.run import Run
from cortex.storage.lake.adopted_manifest import adopted, lake_files_in, move_damaged_manifest
from cortex.storage.lake.lake import Change
from cortex.storage.lake.manifest import Manifest
from cortex.storage.lake.quarantine import move_beside
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.memory.forgetting import tombstones_of
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, TURNS, values


@dataclass
class Repair:
    """What a repair did: lake files that count again, files left out and where they are now."""

    adopted: int = 0
    left_out: tuple[str, ...] = ()
    folder: Path | None = None


class LakeRepair:
    """Makes manifest and lake belong together again; to be called under the lease, before a run opens."""

    def __init__(self, settings: Settings, now: datetime, *, adopt: bool, quarantine: bool) -> None:
        self._settings, self._home, self._now = settings, settings.home, now
        self._adopts, self._quarantines = adopt, quarantine
        self.done = Repair()

    def __call__(self) -> None:
        """Repair. Raises LakeUnclear if files are in doubt and may not be left out."""
        if self._quarantines:
            self._leave_out()
        if self._adopts:
            self._adopt()

    def _adopt(self) -> None:
        manifest = adopted(self._home)
        move_damaged_manifest(self._home)
        self._commit(manifest)
        self.done.adopted = len(manifest.files)

    def _leave_out(self) -> None:
        """Move files that are damaged, in doubt or unknown out of the store, and commit what is left."""
        inventory = lake_files_in(self._home)
        doubtful = set(inventory.damaged) | (set(inventory.unclear()) if self._adopts else set())
        manifest = None if self._adopts else Store(self._home).lake
        if manifest is not None:
            doubtful |= set(manifest.unknown())
        self.done.folder = move_beside(self._home, doubtful, self._now)
        self.done.left_out = tuple(sorted(doubtful))
        if manifest is not None:
            left = manifest.manifest.copy()
            gone = [file for path, file in left.files.items() if not (manifest.root / path).is_file()]
            self.done.left_out = tuple(sorted({*doubtful, *(file.path for file in gone)}))
            partitions = {file.partition for file in gone}
            left.files = {path: file for path, file in left.files.items() if file not in gone}
            # Their transcripts are read again, as far as they are still there.
            left.cursors = {n: c for n, c in left.cursors.items() if c.project_id not in partitions}
            self._commit(left)

    def _commit(self, manifest: Manifest) -> None:
        """Commit `manifest`, with events for every session, and none of what is to stay forgotten."""
        store = Store(self._home)
        store.lake.manifest = manifest
        policy = read_policy(self._home)
        run = Run(store, self._settings, policy, self._now, RunReport("repair", "plain", self._now))
        scopes = {*run.readings.scopes(), *store.tables.scopes(), GLOBAL_SCOPE}
        with store.lake.change() as change:
            for project_id in sorted(manifest.partitions("turns")):
                _complete(run, change, project_id)
            change.notes = change.notes.without_projections().due_to_wipe(scopes)


def _complete(run: Run, change: Change, project_id: str) -> None:
    """Add the events of sessions that have none on file; drop turns that a person wanted forgotten."""
    lake = run.store.lake
    turns, events = lake.read(TURNS, project_id), lake.read(EVENTS, project_id)
    is_forgotten = tombstones_of(run.store.journal.read()).covers(turns)
    kept = turns.filter(pa.array((~is_forgotten).to_list(), pa.bool_()))
    if kept.num_rows < turns.num_rows:
        change.replace(TURNS, project_id, kept)
    sound = events.filter(pc.is_in(events["turn_id"], kept["turn_id"].combine_chunks()))
    on_file = {name for file in lake.manifest.live(EVENTS.name, project_id) for name in file.sessions}
    sessions = set(values(kept, "session_id"))
    lacking = sessions - on_file - set(values(sound, "session_id"))
    if lacking or sound.num_rows < events.num_rows:
        change.replace(
            EVENTS,
            project_id,
            pa.concat_tables([sound, *_extracted(run, project_id, kept, lacking)]),
            tuple(sorted(sessions)),
        )


def _extracted(run: Run, project_id: str, turns: pa.Table, sessions: Collection[str]) -> list[pa.Table]:
    if not sessions:
        return []
    mine = turns.filter(pc.is_in(turns["session_id"], pa.array(sorted(sessions), pa.string())))
    return [events_of(run, project_id, in_first_place(mine, turns))]
