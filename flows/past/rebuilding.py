"""
Rebuild and comparison: tables from the lake alone, next to or in place of the live ones; repair of the lake
itself.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.embedders import Embedding
from cortex.flows.extract_transcripts import events_of
from cortex.flows.publishing.briefs import archive_of, draft_of, rendered_from, shown_everywhere
from cortex.flows.reading.transcript_reader import in_first_place
from cortex.flows.run.run import FreshLedger, Run
from cortex.flows.run_report import RunReport
from cortex.flows.stages.guard import guard
from cortex.flows.stages.order import PUBLISH, TABLES
from cortex.storage.copies.backup import restore_lake_files
from cortex.storage.lake.adopted_manifest import (
    adopted,
    lake_files_in,
    move_damaged_manifest,
    quarantine_files,
)
from cortex.storage.lake.journal import Journal
from cortex.storage.lake.lake import Change
from cortex.storage.lake.manifest import REPLACED_BY, Manifest, Output
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import Settings
from cortex.storage.store import DATABASE, Store
from cortex.storage.tables.tables import HAS_VECTOR, INDEX_TEXT, PROJECTED, SEARCHED, Dataset, StoredTables
from cortex.transforms.memory.forgetting import tombstones_of
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, TURNS, values


def rebuild(run: Run, only: Sequence[str] | None = None) -> None:
    """
    Make new tables from the lake, replace the live ones with them, publish again.

    Vectors come from the lake; only texts without one are embedded. Killed before the swap nothing has
    changed; killed within it, the notes of what was made are gone and the next run makes the rest again.
    A scope whose audit fails keeps its live tables. Raises LossRefused, before anything is replaced, if
    much of what is shown would be gone. `only` names the scopes to replace (default: all).
    """
    with run.report.stage("rebuild") as row:
        run.store.journal.take_in()
        guard(run)
        tables = run.store.rebuilt_tables()
        tables.remove()
        rebuilt = _rebuilt(run, tables)
        run.store.lake.manifest = rebuilt.store.lake.manifest  # texts without a vector were embedded
        run.outcome.failed |= rebuilt.outcome.failed
        run.report.violations += rebuilt.report.violations
        scopes = {*run.store.tables.scopes(), *tables.scopes()} - rebuilt.outcome.failed
        replaced = sorted(scopes if only is None else scopes & set(only))
        _forget_outputs(run, replaced)
        row.rows_out = sum(map(tables.put_in_place, replaced))
        run.store.lake.note(rebuilt.ledger.notes.of_scopes(replaced).in_place_of(run.store.lake.notes))
        tables.remove()
        row.note = f"{len(replaced)} scopes"
    _publish(run)


def _publish(run: Run) -> None:
    for publishing in PUBLISH:
        publishing(run)


def _rebuilt(run: Run, tables: StoredTables) -> Run:
    """Return a run that has made all tables from the lake, by the stages that every run uses."""
    store = Store(run.store.home)
    store.tables = tables
    report, embedding = RunReport("rebuild", "plain", run.now), Embedding(run.embedding.embedder)
    rebuilt = Run(
        store, run.settings, run.policy, run.now, report, embedding, run.progress, ledger_type=FreshLedger
    )
    for table_stage in TABLES:
        table_stage(rebuilt)
    return rebuilt


def _forget_outputs(run: Run, scopes: Sequence[str]) -> None:
    """Forget that these scopes' tables and what is published of them were made."""
    with run.store.lake.change() as change:
        notes = change.notes.without_outputs(REPLACED_BY, scopes)
        change.notes = notes.without_outputs({DATABASE.stage}, {DATABASE.scope})


# -- Comparison: the live tables and briefs against what the lake says, cell by cell; nothing is changed.

# How far back the day of the live memories is looked for: a store left alone for ten years.
DAYS_LOOKED_BACK = 3_650


@dataclass(frozen=True)
class Difference:
    """One cell, or one whole row (`column` empty), that the live tables and the lake say differently."""

    scope: str
    table: str
    key: str
    column: str
    live: str | None
    rebuilt: str | None


@dataclass
class Comparison:
    """What was found: every difference, how many rows were compared, and what to know of it."""

    differences: list[Difference] = field(default_factory=list)
    rows: int = 0
    notes: list[str] = field(default_factory=list)


def compare(run: Run) -> Comparison:
    """
    Make every table in memory from the lake and compare it with the live one, row for row.

    Vectors are those of the lake. Each scope is compared as of the day on which its live memories were aged,
    and without the journal's waiting entries, which no run has used. If the live tables were made from
    something else than the lake holds now, a note says so.
    """
    comparison = Comparison()
    variants: dict[datetime, Run] = {}
    for scope in sorted({*run.readings.scopes(), *run.store.tables.scopes()}):
        aged_on = _aged_on(run, scope)
        day = aged_on or run.day
        if aged_on is None and run.store.tables.open(scope, "memories").count():
            comparison.notes.append(f"{scope}: the lake has changed since its tables were made: `cortex run`")
        if day not in variants:
            variants[day] = _variant(run, day)
            for table_stage in TABLES:
                table_stage(variants[day])
        variant = variants[day]
        if day != run.day:
            comparison.notes.append(f"{scope}: compared as of {day:%Y-%m-%d}, the day of its live tables")
        for table in PROJECTED:
            _compare_table(run, variant, scope, table, comparison)
        if scope != GLOBAL_SCOPE:
            _compare_brief(run, variant, scope, comparison)
    return comparison


def _variant(run: Run, day: datetime) -> Run:
    """Return a run that makes tables in memory as of `day`, without the journal's waiting entries."""
    store = Store(run.store.home)
    store.lake.manifest = run.store.lake.manifest
    store.journal = Journal(store.home, store.lake, counts_waiting=False)
    store.tables = store.tables_in_memory(is_searched=False)
    return Run(
        store,
        run.settings,
        run.policy,
        day,
        RunReport("comparison", "plain", run.now),
        Embedding(run.embedding.embedder, is_asked=False),  # what the lake has no vector for is not embedded
        ledger_type=FreshLedger,
    )


def _aged_on(run: Run, scope: str) -> datetime | None:
    """Return the day of a scope's live memories; None if they were made from something else than now."""
    noted = run.store.lake.notes.outputs.get(Output("decay", scope))
    of_day = _variant(run, run.day).fingerprints.aged_by_day(scope)
    days = (run.day - timedelta(days=back) for back in range(DAYS_LOOKED_BACK))
    return next((day for day in days if of_day(day, ()) == noted), None)


def _compare_table(run: Run, variant: Run, scope: str, table: str, comparison: Comparison) -> None:
    live_rows = _comparable(run.store.tables.open(scope, table), table)
    variant_rows = _comparable(variant.store.tables.open(scope, table), table)
    comparison.rows += variant_rows.num_rows
    if live_rows.equals(variant_rows):
        return
    (key,) = PROJECTED[table].key
    live = {row[key]: row for row in live_rows.to_pylist()}
    rebuilt = {row[key]: row for row in variant_rows.to_pylist()}
    for name in sorted({*live, *rebuilt}):
        before, after = live.get(name), rebuilt.get(name)
        if before is None or after is None:
            sides = ("missing" if row is None else "there" for row in (before, after))
            comparison.differences.append(Difference(scope, table, name, "", *sides))
            continue
        for column in {**before, **after}:
            if before.get(column) != after.get(column):
                cells = (str(before.get(column)), str(after.get(column)))
                comparison.differences.append(Difference(scope, table, name, column, *cells))


def _comparable(dataset: Dataset, table: str) -> pa.Table:
    """Return a dataset's rows by key: the schema's columns, the indexed text, whether there is a vector."""
    declared = PROJECTED[table].arrow.names
    if table not in SEARCHED or not dataset.count():
        return dataset.read().select(declared).combine_chunks()
    return dataset.read([*declared, INDEX_TEXT, HAS_VECTOR]).combine_chunks()


def _compare_brief(run: Run, variant: Run, scope: str, comparison: Comparison) -> None:
    """Compare the published brief and what goes with it, unless of another day or repository state."""
    noted = run.store.lake.notes.outputs.get(Output("render", scope))
    if noted != rendered_from(variant, scope, shown_everywhere(variant)):
        comparison.notes.append(
            f"{scope}: its brief is of another day or state of the repository: not compared"
        )
        return
    published, draft = run.store.published, draft_of(variant, scope)
    for name, live, rebuilt in (
        ("brief", published.brief(scope), draft.brief),
        ("archive", published.archive(scope), archive_of(variant, scope)),
    ):
        comparison.rows += 1
        if live != rebuilt:
            comparison.differences.append(Difference(scope, name, scope, "text", live, rebuilt))


# -- Repair of the lake on request: a manifest made from its files, or files left out that cannot be used.


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
        store = None if self._adopts else Store(self._home)
        manifest = store.lake if store else None
        if store is not None and manifest is not None:
            changed = manifest.damaged_files()
            sound = restore_lake_files(store, changed)
            doubtful |= {file.path for file in changed if (manifest.root / file.path).is_file()}
            doubtful = (doubtful | set(manifest.unknown())) - {file.path for file in sound}
        self.done.folder = quarantine_files(self._home, doubtful, self._now)
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
