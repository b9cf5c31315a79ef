"""The lake: append-only Parquet, the truth; a file counts only once the manifest names it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.errors import SchemaMismatch
from cortex.storage.encryption import SEALED, SEALED_WITH, Key, Vault, seal
from cortex.storage.files import writing_to
from cortex.storage.lake_files import place_of, readable, write_durably, write_rows
from cortex.storage.manifest import Cursor, LakeFile, Manifest, read_manifest, write_manifest
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EVENTS, JOURNAL, TURNS, VECTORS, Table

LAKE_TABLES = {table.name: table for table in (TURNS, EVENTS, JOURNAL, VECTORS)}

# Above this many live files a partition is rewritten as one: 1,000 small runs leave 16 files, not 1,000.
MAXIMUM_FILES_PER_PARTITION = 16


class Change:
    """One commit in the making: files written so far, and what the manifest will say."""

    def __init__(self, lake: "Lake") -> None:
        self._lake = lake
        self.manifest = lake.manifest.copy()
        self.manifest.generation += 1

    def append(self, table: Table, partition: str, rows: pa.Table, sessions: tuple[str, ...] = ()) -> None:
        """
        Add `rows` to a partition of `table`; nothing happens without rows and sessions.

        `sessions` named here are held whole by this file: rows of the same sessions in older files of the
        partition no longer count.
        """
        if not rows.num_rows and not sessions:
            return
        written = self._lake.write_file(table, partition, self.manifest.generation, rows, sessions)
        self.manifest.files[written.path] = written
        if sessions:
            self._drop_shadowed(table.name, partition)

    def replace(self, table: Table, partition: str, rows: pa.Table, sessions: tuple[str, ...] = ()) -> None:
        """Make `rows` the whole content of a partition."""
        for old in self.manifest.live(table.name, partition):
            self._drop(old.path)
        self.append(table, partition, rows, sessions)

    def move_cursor(self, transcript: str, cursor: Cursor) -> None:
        """Note how far `transcript` was read."""
        self.manifest.cursors[transcript] = cursor

    def made(self, stage: str, fingerprint: str) -> None:
        """Note that `stage` made its output from inputs with this fingerprint."""
        self.manifest.stages[stage] = fingerprint

    def _drop_shadowed(self, table: str, partition: str) -> None:
        seen: set[str] = set()
        for file in reversed(self.manifest.live(table, partition)):
            if file.sessions and set(file.sessions) <= seen:
                self._drop(file.path)
            seen.update(file.sessions)

    def _drop(self, path: str) -> None:
        del self.manifest.files[path]


class Lake:
    """The Parquet tables turns, events, journal and vectors below one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "lake"
        self.manifest_path = home / "runs" / "manifest.json"
        self.manifest: Manifest = read_manifest(self.manifest_path)

    @property
    def key_id(self) -> str | None:
        """The id of the key that new files are sealed with, None where they are written in clear."""
        return self.manifest.stages.get(SEALED_WITH)

    @cached_property
    def vault(self) -> Vault:
        """What opens and makes sealed files."""
        return Vault(self.home)

    def check_key(self) -> None:
        """Raise KeyUnavailable where the lake is sealed and its key is not to be had."""
        if self.key_id:
            self.vault.key(self.key_id)

    @contextlib.contextmanager
    def change(self) -> Iterator[Change]:
        """
        Commit what the block adds, all or nothing: files first, the manifest last.

        Files that no longer count stay until `sweep`: published views still read them.
        Raises StoreNotWritable when the disk refuses; the last good state stays. Only under the lease.
        """
        change = Change(self)
        with writing_to(self.home):
            yield change
            self.manifest_path.parent.mkdir(parents=True, exist_ok=True)
            write_manifest(self.manifest_path, change.manifest)
            self.manifest = change.manifest

    def note(self, made: dict[str, str]) -> None:
        """Note stage fingerprints; writes nothing when they are known already."""
        if all(self.manifest.stages.get(stage) == fingerprint for stage, fingerprint in made.items()):
            return
        with self.change() as change:
            for stage, fingerprint in made.items():
                change.made(stage, fingerprint)

    def write_file(
        self, table: Table, partition: str, generation: int, rows: pa.Table, sessions: tuple[str, ...]
    ) -> LakeFile:
        """Write one Parquet file, durable but not yet live. Raises SchemaMismatch on other columns."""
        if not rows.schema.equals(table.arrow):
            raise _mismatch(table, rows.schema)
        by = "model" if table is VECTORS else "project"
        relative = f"{table.name}/{by}={partition}/{generation:08d}-{_batch_name(rows, table)}.parquet"
        if self.key_id:
            relative += SEALED
        write_rows(self.root, relative, table.name, rows, self.vault, self.key_id)
        return LakeFile(relative, table.name, partition, rows.num_rows, generation, sessions)

    def read(
        self,
        table: Table,
        partition: str | None = None,
        columns: list[str] | None = None,
        sessions: set[str] | None = None,
    ) -> pa.Table:
        """
        Return the live rows of `table` (of one partition, of some columns, of some sessions).

        Rows that a newer file shadows are left out. Duplicate turns are not folded here.
        """
        pieces = []
        shadowed: dict[str, set[str]] = {}
        for file in reversed(self.manifest.live(table.name, partition)):
            hidden = shadowed.setdefault(file.partition, set())
            wanted = None if sessions is None else sessions - hidden
            piece = self._read_file(table, file, columns, hidden if wanted is None else None, wanted)
            pieces.append(piece)
            hidden.update(file.sessions)
        schema = table.arrow if columns is None else pa.schema([table.arrow.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *reversed(pieces)])

    def _read_file(
        self,
        table: Table,
        file: LakeFile,
        columns: list[str] | None,
        without: set[str] | None,
        only: set[str] | None,
    ) -> pa.Table:
        condition = None
        if only is not None:
            condition = pa.compute.field("session_id").isin(sorted(only))
        elif without and "session_id" in table.arrow.names:
            condition = ~pa.compute.field("session_id").isin(sorted(without))
        try:
            source = readable(self.root, file.path, table.name, self.vault)
            found = pq.read_table(source, columns=columns, filters=condition, partitioning=None)
        except FileNotFoundError as error:
            raise SchemaMismatch(
                f"the lake file {file.path} is missing.",
                "Restore it from a backup, or backfill the transcripts again.",
            ) from error
        schema = table.arrow if columns is None else pa.schema([table.arrow.field(name) for name in columns])
        if found.schema.names != schema.names:
            raise _mismatch(table, found.schema)
        return found.cast(schema)

    def fingerprint(self, table: Table, partition: str | None = None) -> str:
        """Return a value that changes whenever the live files of `table` (of the partition) do."""
        # Sealed or not, a file says the same: encrypting a store makes nothing anew.
        return content_id(*[f.path.removesuffix(SEALED) for f in self.manifest.live(table.name, partition)])

    def sweep(self) -> int:
        """
        Remove the files that the manifest does not name; return how many.

        They were replaced since, or a killed run left them. Only under the lease, and only once the
        published views read the present files.
        """
        live = set(self.manifest.files)
        removed = 0
        for path in self.root.rglob("*"):
            if path.is_file() and path.relative_to(self.root).as_posix() not in live:
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def crowded(self) -> list[tuple[Table, str]]:
        """Return the (table, partition) pairs that have more live files than they should."""
        return [
            (table, partition)
            for table in LAKE_TABLES.values()
            for partition in self.manifest.partitions(table.name)
            if len(self.manifest.live(table.name, partition)) > MAXIMUM_FILES_PER_PARTITION
        ]

    def join_small_files(self) -> None:
        """Rewrite each crowded partition as one file, so that a thousand runs leave no thousand files."""
        for table, partition in self.crowded():
            self.compact(table, partition)

    def compact(self, table: Table, partition: str) -> None:
        """Rewrite a partition as one file, each key once, with the same rows."""
        rows = each_key_once(table, self.read(table, partition))
        sessions = {s for f in self.manifest.live(table.name, partition) for s in f.sessions}
        with self.change() as change:
            change.replace(table, partition, rows, tuple(sorted(sessions)))

    def reseal(self, key: Key | None) -> int:
        """
        Write every live file anew, sealed with `key` or (None) in clear, in one commit; return how many.

        Those that are so already stay. The replaced ones go with the next `sweep`. Killed before the commit,
        the lake is as it was; what was written by then is swept too.
        """
        with self.change() as change:
            before = dict(change.manifest.files)
            for file in before.values():
                if file.path.endswith(SEALED) == (key is None):
                    del change.manifest.files[file.path]
                    made = self._resealed(file, key)
                    change.manifest.files[made.path] = made
            change.manifest.stages.pop(SEALED_WITH, None)
            if key is not None:
                change.made(SEALED_WITH, key.id)
        return sum(path not in before for path in change.manifest.files)

    def _resealed(self, file: LakeFile, key: Key | None) -> LakeFile:
        """Write a file's bytes as they are, but for the seal."""
        content = (self.root / file.path).read_bytes()
        if key is None:
            made = replace(file, path=file.path.removesuffix(SEALED))
            content = self.vault.unseal(content, place_of(file.path, file.table))
        else:
            made = replace(file, path=file.path + SEALED)
            content = seal(key, content, place_of(made.path, file.table))
        write_durably(self.root / made.path, lambda part: part.write_bytes(content))
        return made


def each_key_once(table: Table, rows: pa.Table) -> pa.Table:
    """Return `rows` with the first row of each key (turns: the earliest place), ordered by key."""
    import polars as pl

    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    key = list(table.key)
    order = [*key, "file", "line", "block"] if table.name == "turns" else key
    kept = frame.sort(order, maintain_order=True).unique(subset=key, keep="first", maintain_order=True)
    return kept.to_arrow().cast(table.arrow)


def _batch_name(rows: pa.Table, table: Table) -> str:
    return content_id(*(str(value) for name in table.key for value in rows[name].to_pylist()))[:12]


def _mismatch(table: Table, schema: pa.Schema) -> SchemaMismatch:
    missing = sorted(set(table.arrow.names) - set(schema.names))
    unexpected = sorted(set(schema.names) - set(table.arrow.names))
    return SchemaMismatch(
        f"table '{table.name}' has another layout: missing {missing}, unexpected {unexpected}.",
        "Install the version of Cortex that wrote it, or run `cortex rebuild` when the lake is intact.",
    )
