"""Export of the published tables as Delta tables: what changed since the last one, a partition a project."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cortex.flows.context.context import Context
from cortex.flows.operations.lookup.targets import scopes_of
from cortex.storage.copies.copy_register import note_copy
from cortex.storage.elsewhere.delta_folder import DeltaFolder, DeltaState, columns_digest
from cortex.storage.elsewhere.share_place import member_id
from cortex.storage.published.published_views import FROM_THE_LAKE, SNAPSHOTS
from cortex.storage.published.sandboxed_sql import database_of_store
from cortex.storage.store import Store
from cortex.transforms.errors import UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Forget, entries_in
from cortex.transforms.schemas import Table

EXPORTED = {table.name: table for table in (*FROM_THE_LAKE, *SNAPSHOTS)}
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class TableExport:
    """A table's export: projects there now, how many of them were written, how many were taken out."""

    table: str
    projects: int
    written: int
    removed: int


@dataclass(frozen=True)
class DeltaExport:
    """An export to Delta: its place, and what was done for each table."""

    place: str
    tables: Sequence[TableExport]


def export_delta(
    context: Context, place: str, *, tables: Sequence[str] = (), project: str | None = None
) -> DeltaExport:
    """
    Bring Delta tables at a folder or `s3://` prefix in step with what `cortex sql` shows.

    Only the projects whose rows changed are written, a table in one commit. After something was forgotten
    here, older versions there are removed. Raises UsageError without the library, for a place that holds
    another store's tables, and NotFound if nothing is published.
    """
    folder = DeltaFolder(place)
    store = context.open_store()
    own = frozenset(scopes_of(context, store, project)) if project else None
    chosen = [EXPORTED[name] for name in tables] or list(EXPORTED.values())
    states = {table: folder.state(table) for table in chosen}
    store_id = member_id(str(context.home))
    if any(state and state.store not in ("", store_id) for state in states.values()):
        raise UsageError(
            f"{folder.place} holds the tables of another store.", "Give each store a place of its own."
        )
    erasures = _erasures(store)
    note_copy(context.home, "delta", folder.place, context.now)  # before: a killed export left words there
    exports = []
    for table in chosen:
        exporter = _Exporter(store, folder, table, states[table], erasures, store_id)
        exports.append(exporter.export(own))
    return DeltaExport(folder.place, exports)


@dataclass(frozen=True)
class _Exporter:
    """The export of one table."""

    store: Store
    folder: DeltaFolder
    table: Table
    before: DeltaState | None
    erasures: str
    store_id: str

    def export(self, own: frozenset[str] | None) -> TableExport:
        """Write what changed, of all projects or of `own` alone."""
        with self._database() as database:
            digests = _digests(database, self.store, self.table)
            there = self.folder.partitions(self.table)
            columns = columns_digest(self.table)
            before = self.before or DeltaState(self.store_id, columns, erasures=self.erasures)
            is_other = before.columns not in ("", columns)
            if is_other and own is not None:
                raise UsageError(
                    "the tables there have other columns.", "Export all projects once: leave out --project."
                )
            changed = {
                name
                for name in there | digests.keys()
                if (own is None or name in own)
                and (is_other or before.partitions.get(name) != digests.get(name))
            }
            kept = {name: digest for name, digest in before.partitions.items() if name not in changed}
            noted = {**kept, **{name: digests[name] for name in changed if name in digests}}
            state = DeltaState(self.store_id, columns, noted, before.erasures)
            if changed or self.before is None:
                batches = _batches(database, self.table, changed)
                is_whole = is_other or there <= changed
                self.folder.write(self.table, batches, None if is_whole else changed, state)
        if before.erasures != self.erasures:
            # Other projects' rows may hold what was forgotten until all are exported.
            done = self.erasures if own is None else before.erasures
            self.folder.purge(self.table, replace(state, erasures=done))
        written = changed & digests.keys()
        return TableExport(self.table.name, len(noted), len(written), len(there & changed - written))

    def _database(self) -> Any:
        query = f"select * from {self.table.name}"
        store = self.store
        return database_of_store(store.published, store.lake, query, store.projects.merged())


def _batches(database: Any, table: Table, names: set[str]) -> Iterator[pa.RecordBatch]:
    columns = ", ".join(f'"{name}"' for name in table.arrow.names)
    key = ", ".join(table.key)
    query = f"select {columns} from {table.name} where project_id in (select unnest(?)) order by {key}"
    reader = database.sql(query, params=[sorted(names)]).to_arrow_reader(BATCH_ROWS)
    for batch in reader:
        yield from pa.Table.from_batches([batch]).cast(table.arrow).to_batches()


def _digests(database: Any, store: Store, table: Table) -> dict[str, str]:
    """Return by project what tells its rows from others: its files in the lake, else the rows."""
    if table in SNAPSHOTS:
        rows = database.execute(
            f"select project_id, count(*), sum(hash(t))::varchar from {table.name} t group by project_id"
        ).fetchall()
        return {name: content_id("rows", str(count), total)[:16] for name, count, total in rows}
    merged = store.projects.merged()
    paths: dict[str, list[str]] = {}
    for file in store.lake.manifest.live(table.name):
        if file.rows:
            paths.setdefault(merged.get(file.partition, file.partition), []).append(file.path)
    return {name: content_id("files", *sorted(files))[:16] for name, files in paths.items()}


def _erasures(store: Store) -> str:
    """Return what tells whether anything was forgotten since."""
    journal = store.journal.read()
    done = sorted(row["entry_id"] for row, entry in entries_in(journal, Forget) if not entry.is_wish)
    return content_id("erasures", *done, store.lake.notes.retained or "")[:16]
