"""Brings this machine's copy in step with the store elsewhere: new files, manifest, then its own index."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from cortex.storage.filesystem.files import own_lock, replacing_stored, write_stored, writing_to
from cortex.storage.filesystem.place import RemoteNote, keep_note, remote_note
from cortex.storage.lake.encryption import Vault
from cortex.storage.lake.journal import Journal
from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import read_manifest
from cortex.storage.projects.projects import ProjectRegister
from cortex.storage.published.published import Published
from cortex.storage.remote.bucket import Bucket, BucketLog, bucket_at, in_parallel
from cortex.storage.remote.commit_log import CommitLog, LogEntry, last_entry
from cortex.storage.remote.file_tree import (
    MANIFEST_FILE,
    SHARED,
    DigestCache,
    FileTree,
    Stored,
    digest_of,
    folder_paths,
    parse_tree,
)
from cortex.storage.tables.lance_tables import ROW_HASH, LanceTables, hashes_in
from cortex.storage.tables.search_file import DATABASE, SEARCH_FILE, complete_index, parts_in, remove_index
from cortex.storage.tables.search_index import SearchIndex
from cortex.storage.tables.tables import HAS_VECTOR, INDEX_TEXT, PROJECTED, VECTOR
from cortex.transforms.errors import (
    FileDamaged,
    LakeUnclear,
    StoreBusy,
    StoreNotWritable,
    StoreUnreachable,
    TablesDamaged,
)

# -- The search index of a copy: machines share the tables, and each makes the index of them itself.

# Which tables changed here since the index was last in step with them; there is none if it is.
UNINDEXED_FILE = Path("runs") / "remote-unindexed.json"

_DATASET_FILE = re.compile(r"tables/([^/]+)/([a-z]+)\.lance/.+", re.DOTALL)

# A scope, and the name of a table.
_Part = tuple[str, str]


def note_unindexed(home: Path, paths: Iterable[str]) -> None:
    """Note before files of the store come or go (`paths`) which tables the index is then to follow."""
    matches = filter(None, map(_DATASET_FILE.fullmatch, paths))
    changed = {(match[1], match[2]) for match in matches if match[2] in PROJECTED}
    if parts := sorted(changed | _unindexed(home)):
        write_stored(home, home / UNINDEXED_FILE, json.dumps(parts).encode())


def index_tables(home: Path) -> None:
    """
    Bring the search index in step with the tables that were noted; repeated after a kill.

    Of a table that cannot be indexed here the index then has nothing: the next run makes it from the lake.
    """
    parts = _unindexed(home)
    if not parts:
        return
    tables, path = LanceTables(home), home / "tables" / SEARCH_FILE
    with writing_to(home):
        try:
            for scope, name in sorted(parts):
                _index_table(SearchIndex(path), tables, scope, name)
        except sqlite3.OperationalError:  # of the disk, not of what the file holds
            raise
        except sqlite3.DatabaseError:
            remove_index(path)
        complete_index(path)
        (home / UNINDEXED_FILE).unlink(missing_ok=True)


def _index_table(index: SearchIndex, tables: LanceTables, scope: str, name: str) -> None:
    try:
        rows = _rows_of(tables, scope, name) if tables.exists(scope, name) else None
    except TablesDamaged:
        rows = None
    if rows is None:
        index.remove(scope, name)
    else:
        index.replace(scope, name, rows, hashes_in(rows))


def _rows_of(tables: LanceTables, scope: str, name: str) -> pa.Table | None:
    """Return a table's rows with their vectors; None if an earlier version wrote it without them."""
    columns = [*PROJECTED[name].arrow.names, INDEX_TEXT, HAS_VECTOR, VECTOR, ROW_HASH]
    rows = tables.open(scope, name).read(columns)
    return None if HAS_VECTOR in rows.schema.names and VECTOR not in rows.schema.names else rows


def _unindexed(home: Path) -> set[_Part]:
    try:
        parts = json.loads((home / UNINDEXED_FILE).read_bytes())
        return {(str(scope), str(name)) for scope, name in parts}
    except FileNotFoundError:
        return set()
    except (ValueError, TypeError):  # damaged from outside
        folders = (home / "tables").glob("*/*.lance")
        return {(path.parent.name, path.stem) for path in folders} | parts_in(home / "tables" / SEARCH_FILE)


# How often a reader begins again whom a writer overtook: what it was reading is gone.
MAX_SYNC_ATTEMPTS = 5

# A sealed object is longer than its file, by far less than this.
ENCRYPTION_BYTES = 64 * 1024


class ObjectMissing(Exception):
    """An object that a state names is not there: a later state does without it."""


def origin_of(log: CommitLog) -> str:
    """Return what tells this log from any other: the nonce of its first entry; empty for an empty log."""
    content = log.read(1)
    return LogEntry.of_bytes(content).nonce if content else ""


def check_origin(note: RemoteNote, log: CommitLog) -> RemoteNote:
    """Return the note with the log's origin. Raises LakeUnclear if another store is there than before."""
    origin = origin_of(log)
    if note.origin and origin != note.origin:
        raise LakeUnclear(
            f"{note.uri} {'holds another store' if origin else 'is empty'} now. Nothing was changed.",
            "Check AWS_ENDPOINT_URL and the bucket. To put this machine's copy there: remove remote.json "
            "from the copy, and run again.",
        )
    return replace(note, origin=origin)


def checked_remote_uri(home: Path) -> str:
    """Return the URI of the store that `home` is a copy of, once it answers. Raises StoreUnreachable."""
    note = remote_note(home)
    assert note is not None
    check_origin(note, BucketLog(bucket_at(note.uri)))
    return note.uri


def take_in(
    home: Path, bucket: Bucket, note: RemoteNote, tree_name: str, *, is_new: bool = False
) -> FileTree:
    """
    Make the copy the state that `tree_name` names, "" for none yet; return that state's tree.

    What a killed run left in the copy goes; the search index follows the tables. `is_new` says that the
    folder was never in step with this store. Under the lease, or the copy's own lock for reading. Raises
    LakeUnclear for a new copy that holds a store already, ObjectMissing, FileDamaged, KeyUnavailable.
    """
    if not tree_name:
        return {}
    if is_new and read_manifest(home / MANIFEST_FILE).generation:
        raise LakeUnclear(
            f"{home} holds a store of its own, and {note.uri} holds another. Nothing was changed.",
            "Move that folder away to work on the store there, or name an empty prefix to put it there.",
        )
    content = bucket.read(tree_name)
    if content is None:
        raise ObjectMissing(tree_name)
    tree = parse_tree(content, tree_name)
    index, vault = DigestCache(home), Vault(home)
    new = [path for path, stored in tree.items() if index.look(path) != (stored.digest, stored.size)]
    is_changed = tree_name != note.tree
    if new or is_changed:
        before = Lake(home)
        before.remove_unfinished()
        old = {f"lake/{path}" for path in (*before.manifest.files, *before.manifest.replaced)}
        gone = [path for path in (*old, *folder_paths(home)) if path not in tree]
        note_unindexed(home, [*new, *gone])
        _download(home, bucket, tree, new, vault)
        _remove(home, gone)
        index.keep()
        _write_database(home)
        index_tables(home)
    keep_note(home, replace(note, tree=tree_name))
    return tree


def _download(home: Path, bucket: Bucket, tree: FileTree, new: list[str], vault: Vault) -> None:
    last = [path for path in new if "/_versions/" in path]  # a version of a table names its other files
    for paths in ([path for path in new if path not in (*last, MANIFEST_FILE)], last, [MANIFEST_FILE]):
        in_parallel(lambda path: _fetch(home, bucket, path, tree[path], vault), paths)


def _fetch(home: Path, bucket: Bucket, path: str, stored: Stored, vault: Vault) -> None:
    with replacing_stored(home, home / path) as part:
        if not bucket.fetch(stored.name, part, stored.size + ENCRYPTION_BYTES):
            raise ObjectMissing(stored.name)
        if stored.key_id:
            part.write_bytes(vault.decrypted_bytes(part.read_bytes(), path))
        if digest_of(part) != stored.digest:
            raise FileDamaged(
                f"the object {stored.name} of the store is damaged: it differs from what was written.",
                "Put it back from a copy or an older version of the bucket.",
            )


def _remove(home: Path, paths: Iterable[str]) -> None:
    with writing_to(home):
        for path in paths:
            (home / path).unlink(missing_ok=True)
        for shared in SHARED:
            for folder in sorted((home / shared).rglob("*"), reverse=True):
                if folder.is_dir() and not any(folder.iterdir()):
                    shutil.rmtree(folder, ignore_errors=True)


def _write_database(home: Path) -> None:
    """Write the DuckDB file of this machine from what was brought in."""
    lake = Lake(home)
    if DATABASE in lake.notes.outputs:
        merged = ProjectRegister(Journal(home, lake, counts_waiting=False)).merged()
        Published(home).publish_views(lake, merged)


def refresh(home: Path) -> None:
    """
    Bring a copy in step for reading, if nobody writes to it now; nothing for a folder that is no copy.

    Where the store does not answer, or the disk here is full, the copy is read as it is: readers never wait
    for a network that is down.
    """
    note = remote_note(home)
    if note is None:
        return
    try:
        bucket = bucket_at(note.uri)
        log, is_new = BucketLog(bucket), not note.origin
        note = check_origin(note, log)
        number, entry = last_entry(log, note.number)
        if entry is None or (number == note.number and entry.tree == note.tree):
            return
        with own_lock(home):
            _read_again(home, bucket, note, is_new=is_new)
    except (StoreUnreachable, StoreBusy, StoreNotWritable):
        return


def _read_again(home: Path, bucket: Bucket, note: RemoteNote, *, is_new: bool) -> None:
    for _ in range(MAX_SYNC_ATTEMPTS):
        number, entry = last_entry(BucketLog(bucket), note.number)
        tree = entry.tree if entry else ""
        try:
            take_in(home, bucket, replace(note, number=number), tree, is_new=is_new)
            return
        except ObjectMissing:
            continue
    raise StoreBusy("the store changes faster than it can be read here.", "Try again in a moment.")
