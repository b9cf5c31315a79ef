"""
The lake: append-only Parquet, the truth; a file counts only once the manifest names it.

Removed are only files that this manifest named once, or that were noted as written for a commit of its own.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from cortex.storage.filesystem.files import write_stored, writing_to
from cortex.storage.lake.encryption import ENCRYPTED, EncryptionKey, Vault, encrypted_bytes, is_sealed
from cortex.storage.lake.lake_files import (
    CHANGED,
    UNREADABLE,
    Label,
    Unfinished,
    damage_of,
    damaged,
    files_below,
    lake_digest,
    mismatch,
    place_of,
    readable,
    unclear,
    write_rows,
)
from cortex.storage.lake.manifest import (
    Cursor,
    LakeFile,
    Manifest,
    ManifestNotes,
    is_lake_file,
    read_manifest,
    write_manifest,
)
from cortex.transforms.errors import FileDamaged
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import CALLS, EVENTS, JOURNAL, REPLIES, SETTLED, TURNS, VECTORS, Table, values

LAKE_TABLES = {table.name: table for table in (TURNS, EVENTS, SETTLED, REPLIES, JOURNAL, CALLS, VECTORS)}

# Above this many live files a partition is rewritten as one: 1,000 small runs leave 16 files, not 1,000.
MAXIMUM_FILES_PER_PARTITION = 16


class Change:
    """One commit in the making: files written so far, and what the manifest will say."""

    def __init__(self, lake: "Lake") -> None:
        self._lake = lake
        self.manifest = lake.manifest.copy()
        self.manifest.generation += 1

    def append(
        self,
        table: Table,
        partition: str,
        rows: pa.Table,
        sessions: tuple[str, ...] = (),
        *,
        is_whole: bool = False,
    ) -> None:
        """
        Add `rows` to a partition of `table`; nothing happens without rows and sessions.

        `sessions` named here are held whole by this file: rows of the same sessions in older files of the
        partition no longer count. `is_whole` says that the file stands for all older ones of the partition.
        """
        if not rows.num_rows and not sessions:
            return
        label = Label(table.name, partition, self.manifest.generation, sessions, is_whole)
        written = self._lake.write_file(table, label, rows)
        self.manifest.files[written.path] = written
        if sessions:
            self._drop_shadowed(table.name, partition)

    def replace(self, table: Table, partition: str, rows: pa.Table, sessions: tuple[str, ...] = ()) -> None:
        """Make `rows` the whole content of a partition."""
        for old in self.manifest.live(table.name, partition):
            self._drop(old.path)
        self.append(table, partition, rows, sessions, is_whole=True)

    def move_cursor(self, transcript: str, cursor: Cursor) -> None:
        """Note how far `transcript` was read."""
        self.manifest.cursors[transcript] = cursor

    @property
    def notes(self) -> ManifestNotes:
        """The notes kept with the files; set it to note something else."""
        return self.manifest.notes

    @notes.setter
    def notes(self, notes: ManifestNotes) -> None:
        self.manifest.notes = notes

    def _drop_shadowed(self, table: str, partition: str) -> None:
        seen: set[str] = set()
        for file in reversed(self.manifest.live(table, partition)):
            if file.sessions and set(file.sessions) <= seen:
                self._drop(file.path)
            seen.update(file.sessions)

    def _drop(self, path: str) -> None:
        del self.manifest.files[path]


# So many bytes of a table stay in memory for the next stage: events of 40,000 memories.
READ_KEPT_BYTES = 32 * 1024 * 1024


class Lake:
    """The Parquet tables turns, events, settled, replies, journal, calls and vectors below one folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "lake"
        self.manifest_path = home / "runs" / "manifest.json"
        self.manifest: Manifest = read_manifest(self.manifest_path)
        self.unfinished = Unfinished(home)
        self._gathers = False  # notes wait for the next commit
        self._has_gathered = False
        # Of each table the partition that was read last, with its files: several stages ask for it in turn.
        self._last_read: dict[str, tuple[list[LakeFile], pa.Table]] = {}

    @property
    def notes(self) -> ManifestNotes:
        """The notes kept with the files."""
        return self.manifest.notes

    @property
    def key_id(self) -> str | None:
        """The id of the key that new files are encrypted with, None if they are not encrypted."""
        return self.notes.encrypted_with

    @cached_property
    def vault(self) -> Vault:
        """What opens and makes sealed files."""
        return Vault(self.home)

    def write_waiting(self, path: Path, content: bytes) -> None:
        """Write a file that waits for a run, durable, and sealed where the lake is. Raises KeyUnavailable."""
        if self.key_id:
            content = self.vault.encrypted_bytes(content, self._place(path), self.key_id)
        write_stored(self.home, path, content)

    def read_waiting(self, path: Path) -> bytes:
        """Return what `write_waiting` wrote. Raises OSError, KeyUnavailable and FileDamaged."""
        content = path.read_bytes()
        return self.vault.decrypted_bytes(content, self._place(path)) if is_sealed(content) else content

    def _place(self, path: Path) -> str:
        return path.relative_to(self.home).as_posix()

    def check_key(self) -> None:
        """Raise KeyUnavailable where the lake is sealed and its key is unavailable."""
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
            self._note_digests(change.manifest)
            change.manifest.replaced = self._replaced_by(change.manifest)
            write_manifest(self.manifest_path, change.manifest)
            self.manifest = change.manifest
            self._has_gathered = False
            self.unfinished.clear()

    def _note_digests(self, manifest: Manifest) -> None:
        """Note the digests of files of which earlier versions noted none."""
        for file in [file for file in manifest.files.values() if not file.digest]:
            is_sealed = file.path.endswith(ENCRYPTED)
            if (self.root / file.path).is_file() and (
                is_sealed or not damage_of(self.root, file, self.vault)
            ):
                digest = lake_digest(self.root / file.path, reads_again=True)
                manifest.files[file.path] = replace(file, digest=digest)

    def _replaced_by(self, after: Manifest) -> frozenset[str]:
        """Return the files on disk that count no more once `after` is the manifest, and that are ours."""
        ours = {*self.manifest.replaced, *self.manifest.files, *self.unfinished.paths(after.generation)}
        return frozenset(path for path in ours - set(after.files) if (self.root / path).is_file())

    def note(self, notes: ManifestNotes) -> None:
        """Commit `notes` in place of the present ones; writes nothing if they are the same."""
        if notes != self.notes:
            with self.change() as change:
                change.notes = notes

    def note_later(self, notes: ManifestNotes) -> None:
        """
        Put `notes` in place of the present ones; within `gathering_notes` the next commit writes them.

        Only for what a run may forget when it is killed: it finds the work undone and does it again.
        """
        if not self._gathers:
            self.note(notes)
        elif notes != self.notes:
            self.manifest = replace(self.manifest, notes=notes)
            self._has_gathered = True

    @contextlib.contextmanager
    def gathering_notes(self) -> Iterator[None]:
        """Write what is noted for later in the block once: with its next commit, or when the block ends."""
        outer, self._gathers = self._gathers, True
        try:
            yield
        except Exception:
            self._write_gathered()
            raise
        else:
            self._write_gathered()
        finally:
            self._gathers = outer

    def _write_gathered(self) -> None:
        if self._has_gathered:
            with self.change():
                pass

    def write_file(self, table: Table, label: Label, rows: pa.Table) -> LakeFile:
        """Write one Parquet file, durable but not yet live. Raises SchemaMismatch on other columns."""
        if not rows.schema.equals(table.arrow):
            raise mismatch(table, rows.schema)
        by = "model" if table is VECTORS else "project"
        name = f"{label.generation:08d}-{_batch_name(rows, table)}.parquet"
        relative = f"{table.name}/{by}={label.partition}/{name}"
        if self.key_id:
            relative += ENCRYPTED
        self.check_key()  # before the note: what cannot be written leaves none
        self.unfinished.note(label.generation, relative)
        write_rows(self.root, relative, label, rows, self.vault, self.key_id)
        return LakeFile(
            relative,
            table.name,
            label.partition,
            rows.num_rows,
            label.generation,
            label.sessions,
            lake_digest(self.root / relative, reads_again=True),
        )

    def read(
        self,
        table: Table,
        partition: str | None = None,
        columns: list[str] | None = None,
        sessions: set[str] | None = None,
        since: int = -1,
    ) -> pa.Table:
        """
        Return the live rows of `table`: of one partition, some columns, some sessions, commits after `since`.

        Rows that a newer file shadows are left out. Duplicate turns are not folded here.
        """
        if columns == []:  # Parquet would read no row either
            return self.read(table, partition, [*table.key], sessions, since).select([])
        pieces = []
        shadowed: dict[str, set[str]] = {}
        files = self.manifest.live(table.name, partition)
        is_all = sessions is None and since < 0
        known, rows = self._last_read.get(table.name, ([], table.arrow.empty_table()))
        if is_all and known and known == files:
            for file in files:
                self._check_sound(file)
            return rows if columns is None else rows.select(columns)
        for file in reversed(files):
            if file.generation <= since:
                break
            hidden = shadowed.setdefault(file.partition, set())
            wanted = None if sessions is None else sessions - hidden
            piece = self._read_file(table, file, columns, hidden if wanted is None else None, wanted)
            pieces.append(piece)
            hidden.update(file.sessions)
        schema = table.arrow if columns is None else pa.schema([table.arrow.field(name) for name in columns])
        rows = pa.concat_tables([schema.empty_table(), *reversed(pieces)])
        if is_all and columns is None and rows.nbytes <= READ_KEPT_BYTES:
            self._last_read[table.name] = files, rows
        return rows

    def _read_file(
        self,
        table: Table,
        file: LakeFile,
        columns: list[str] | None,
        without: set[str] | None,
        only: set[str] | None,
    ) -> pa.Table:
        import pyarrow.parquet as pq  # here: a question reads no file of the lake

        self._check_sound(file)
        condition = None
        if only is not None:
            condition = _is_of(only)
        elif without and "session_id" in table.arrow.names:
            condition = ~_is_of(without)
        try:
            source = readable(self.root, file.path, table.name, self.vault)
            rows = pq.read_table(source, columns=columns, filters=condition, partitioning=None)
        except FileNotFoundError as error:
            raise damaged(file, "is missing") from error
        except UNREADABLE as error:
            raise damaged(file, f"cannot be read ({type(error).__name__})") from error
        schema = table.arrow if columns is None else pa.schema([table.arrow.field(name) for name in columns])
        if rows.schema.names != schema.names:
            raise mismatch(table, rows.schema)
        return rows.cast(schema)

    def _check_sound(self, file: LakeFile) -> None:
        try:
            self.check_content(file)
        except FileNotFoundError as error:
            raise damaged(file, "is missing") from error

    def check_content(self, file: LakeFile) -> None:
        """
        Raise FileDamaged for a file with another content than was written, FileNotFoundError without one.

        A process reads a file for this once, until it changes. A sealed one is checked when it is opened.
        """
        path = self.root / file.path
        if not file.digest or file.path.endswith(ENCRYPTED):
            path.stat()
        elif lake_digest(path, reads_again=False) != file.digest:
            raise damaged(file, CHANGED)

    def fingerprint(self, table: Table, partition: str | None = None, *, until: int | None = None) -> str:
        """Return a value that changes whenever the live files of `table` (of a partition, to a commit) do."""
        # Encrypted or not, a file says the same: encrypting a store rebuilds nothing.
        files = self.manifest.live(table.name, partition)
        names = [f.path for f in files if until is None or f.generation <= until]
        return content_id(*[name.removesuffix(ENCRYPTED) for name in names])

    def sessions_since(self, table: Table, partition: str, generation: int) -> set[str]:
        """Return the sessions that files written after a commit hold, or hold in the place of older ones."""
        newer = [file for file in self.manifest.live(table.name, partition) if file.generation > generation]
        rows = self.read(table, partition, ["session_id"], since=generation)
        return {*values(rows, "session_id"), *(name for file in newer for name in file.sessions)}

    def sweep(self) -> int:
        """
        Remove the files that the manifest named once and names no more; return how many.

        Everything else in the lake stays. Only under the lease, and only once the published views read the
        present files.
        """
        return self.remove_unfinished() + self._remove(self.manifest.replaced)

    def remove_unfinished(self) -> int:
        """Remove the files of a commit that never came; return how many. Only under the lease."""
        removed = self._remove(self.unfinished.paths(self.manifest.generation + 1))
        self.unfinished.clear()
        return removed

    def _remove(self, paths: Iterable[str]) -> int:
        removed = 0
        for path in set(paths) - set(self.manifest.files):
            if is_lake_file(path) and (self.root / path).is_file():
                (self.root / path).unlink(missing_ok=True)
                removed += 1
        return removed

    def unknown(self) -> list[str]:
        """Return, sorted, the lake files on disk that this manifest never named."""
        own = {*self.manifest.files, *self.manifest.replaced}
        own |= self.unfinished.paths(self.manifest.generation + 1)
        return sorted(set(files_below(self.root)) - own)

    def missing(self) -> list[str]:
        """Return, sorted, the files that the manifest names and that are not there."""
        return sorted(path for path in self.manifest.files if not (self.root / path).is_file())

    def check_readable(self, tables: Iterable[Table]) -> None:
        """Raise FileDamaged for the first live file of `tables` that is not as it was written."""
        for file in (file for table in tables for file in self.manifest.live(table.name)):
            if error := self.error_of(file):
                raise error

    def error_of(self, file: LakeFile) -> FileDamaged | None:
        """Return the error for a file that is not as it was written, None for a sound one."""
        why = damage_of(self.root, file, self.vault)
        return damaged(file, why) if why else None

    def damaged_files(self, most_bytes: int | None = None, begin: int = 0) -> list[LakeFile]:
        """
        Return the live files that are not as they were written, by path.

        Of more than `most_bytes` only so many are read, from the file after the first `begin` on, in a
        circle.
        """
        files = sorted(self.manifest.files.values(), key=lambda file: file.path)
        begin %= max(len(files), 1)
        read_bytes, changed = 0, []
        for file in [*files[begin:], *files[:begin]]:
            if most_bytes is not None and read_bytes >= most_bytes:
                break
            with contextlib.suppress(OSError):
                read_bytes += (self.root / file.path).stat().st_size
            if damage_of(self.root, file, self.vault):
                changed.append(file)
        return sorted(changed, key=lambda file: file.path)

    def drop_unreadable(self, table: Table, partition: str) -> int:
        """Give up files of a partition that cannot be read, if they can be rebuilt. Under the lease."""
        files = self.manifest.live(table.name, partition)
        gone = [file.path for file in files if damage_of(self.root, file, self.vault)]
        if gone:
            with self.change() as change:
                for path in gone:
                    del change.manifest.files[path]
        return len(gone)

    def check_belongs(self) -> None:
        """Raise LakeUnclear where the lake has files that the manifest never named."""
        if unknown := self.unknown():
            raise unclear(unknown, has_manifest=self.manifest_path.is_file())

    def crowded(self) -> list[tuple[Table, str]]:
        """Return the (table, partition) pairs that have more live files than they should."""
        counts = Counter((file.table, file.partition) for file in self.manifest.files.values())
        many = sorted(place for place, count in counts.items() if count > MAXIMUM_FILES_PER_PARTITION)
        return [(table, part) for table in LAKE_TABLES.values() for name, part in many if name == table.name]

    def compact(self, table: Table, partition: str, note: Callable[[Change], None] | None = None) -> None:
        """Rewrite a partition as one file, each key once, with the same rows; `note` is of the commit."""
        rows = each_key_once(table, self.read(table, partition))
        sessions = {s for f in self.manifest.live(table.name, partition) for s in f.sessions}
        with self.change() as change:
            change.replace(table, partition, rows, tuple(sorted(sessions)))
            if note is not None:
                note(change)

    def reencrypt(self, key: EncryptionKey | None) -> int:
        """
        Rewrite every live file, encrypted with `key` or (None) unencrypted, in one commit; return how many.

        Those that are so already stay. The replaced ones go with the next `sweep`. Killed before the commit,
        the lake is as it was; what was written by then is swept too.
        """
        with self.change() as change:
            before = dict(change.manifest.files)
            for file in before.values():
                if file.path.endswith(ENCRYPTED) == (key is None):
                    del change.manifest.files[file.path]
                    self.unfinished.note(change.manifest.generation, _encrypted_name(file.path, key))
                    rewritten = self._rewritten(file, key)
                    change.manifest.files[rewritten.path] = rewritten
            change.notes = replace(change.notes, encrypted_with=None if key is None else key.id)
        return sum(path not in before for path in change.manifest.files)

    def _rewritten(self, file: LakeFile, key: EncryptionKey | None) -> LakeFile:
        """Write a file's bytes as they are, but for the seal."""
        content = (self.root / file.path).read_bytes()
        rewritten = replace(file, path=_encrypted_name(file.path, key))
        if key is None:
            content = self.vault.decrypted_bytes(content, place_of(file.path, file.table))
        else:
            content = encrypted_bytes(key, content, place_of(rewritten.path, file.table))
        write_stored(self.home, self.root / rewritten.path, content)
        return replace(rewritten, digest=lake_digest(self.root / rewritten.path, reads_again=True))


def each_key_once(table: Table, rows: pa.Table) -> pa.Table:
    """Return `rows` with the first row of each key (turns: the earliest place), ordered by key."""
    import polars as pl

    key = list(table.key)
    order = [*key, "file", "line", "block"] if table.name == "turns" else key
    # Of the texts there is one copy: a session's may be 100 MB.
    frame = pl.from_arrow(rows.select(order))
    assert isinstance(frame, pl.DataFrame)
    ordered = frame.with_row_index("place").sort(order, maintain_order=True)
    kept = ordered.unique(subset=key, keep="first", maintain_order=True)["place"]
    return rows.take(kept.to_arrow()).cast(table.arrow)


def _is_of(sessions: set[str]) -> "pa.compute.Expression":
    # Typed: of no session at all, the values would otherwise have no type to compare with.
    import pyarrow.compute as pc

    return pc.field("session_id").isin(pa.array(sorted(sessions), pa.string()))


def _encrypted_name(path: str, key: EncryptionKey | None) -> str:
    return path.removesuffix(ENCRYPTED) if key is None else path + ENCRYPTED


def _batch_name(rows: pa.Table, table: Table) -> str:
    return content_id(*(str(value) for name in table.key for value in rows[name].to_pylist()))[:12]
