"""
Backup and restore: the truth of a store in one file that nobody has to be believed about, and back from it.

It may hold the parts that a backup writes and no other, as regular files, no larger than it says itself and
no larger than text and Parquet can shrink to its size. Only a store that was checked whole is put in place.
"""

import contextlib
import io
import json
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cortex.hooks.background import ENGINE
from cortex.hooks.ticket import sync_file
from cortex.storage.copies.swapping import (
    Swap,
    disable_settings,
    finish_swap,
    note_swap,
    put_in_place,
    staging_copy,
    swap_of,
)
from cortex.storage.filesystem.files import (
    TEMPORARY,
    folder_bytes,
    remove_abandoned_parts,
    replacing,
    sha256_of,
    sync,
    write_stored,
    writing_to,
)
from cortex.storage.lake.encryption import ENCRYPTED, Vault
from cortex.storage.lake.lake import LAKE_TABLES
from cortex.storage.lake.lake_files import CHANGED, damaged, readable
from cortex.storage.lake.manifest import LakeFile, Manifest, read_manifest, write_manifest
from cortex.storage.published.shown_lines import SHOWN_LINES_PATH
from cortex.storage.published.surface import SURFACES_PATH
from cortex.storage.remote.store_lease import lease
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from cortex.storage.settings.settings import load_settings
from cortex.storage.staging.staging import JOURNAL_FOLDER
from cortex.storage.store import Store
from cortex.transforms import schemas
from cortex.transforms.errors import CortexError, NotFound, SchemaMismatch, StoreNotWritable, UsageError
from cortex.transforms.journal_entries import ProjectMerge, entries_in
from cortex.transforms.memory.forgetting import requests_in
from cortex.transforms.schemas import values

# -- Which copies of the store's words lie outside it: `runs/copies.json`, so that forgetting names them.

# Copies of this kind hold the lake's files as they are.
BACKUP_KIND = "backup"

COPIES_FILE = Path("runs") / "copies.json"
# The oldest are dropped: a nightly backup under a new name each day makes 365 a year.
MAX_COPIES = 1_000


@dataclass(frozen=True)
class OutsideCopy:
    """A copy: its `kind` (backup, export, once delta), where it was written, and when last (ISO, UTC)."""

    kind: str
    place: str
    written_at: str


def outside_copies(home: Path) -> list[OutsideCopy]:
    """Return the copies that are noted, the last written first; none if the note is unreadable."""
    try:
        rows = json.loads((home / COPIES_FILE).read_bytes())
        copies = [OutsideCopy(str(row["kind"]), str(row["place"]), str(row["written_at"])) for row in rows]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return sorted(copies, key=lambda copy: copy.written_at, reverse=True)


def note_copy(home: Path, kind: str, place: str, now: datetime) -> None:
    """Note that a copy was written; one place is noted once. A store that cannot be written notes nothing."""
    if not home.is_dir():
        return
    copy = OutsideCopy(kind, place, now.isoformat(timespec="seconds"))
    others = [each for each in outside_copies(home) if (each.kind, each.place) != (kind, place)]
    content = json.dumps([vars(each) for each in [copy, *others][:MAX_COPIES]], indent=1).encode()
    with suppress(StoreNotWritable):
        write_stored(home, home / COPIES_FILE, content)


# -- Backup: the truth of a store in one file, with the hash of each part of it inside.

BACKUP_VERSION = 1
CONTENTS = "backup.json"

MANIFEST_PATH = "runs/manifest.json"
CONFIG_PATH = "config.toml"

# The name of a project, or of a model: a folder's name in the store, never a path.
NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
# Every part that a backup has. A restore takes no other: `engine` or `python` in a store name programs that
# the next hook starts.
_PART = re.compile(
    rf"{re.escape(MANIFEST_PATH)}|{re.escape(SHOWN_LINES_PATH)}|{re.escape(CONFIG_PATH)}|policy/{NAME}\.csv|"
    rf"lake/(?:{'|'.join(LAKE_TABLES)})/(?:project|model)={NAME}/\d{{8,}}-[0-9a-f]{{12}}\.parquet(?:\.aes)?",
    re.ASCII,
)


@dataclass(frozen=True)
class Backup:
    """What a backup file says of itself: sha256 and rows by path and table."""

    version: int
    made_at: str
    files: dict[str, str]
    rows: dict[str, int]
    bytes: int


def is_part(name: str) -> bool:
    """
    Return whether a backup may hold a part of this name.

    >>> is_part("policy/thresholds.csv"), is_part("engine"), is_part("policy/../engine")
    (True, False, False)
    """
    return _PART.fullmatch(name) is not None


def write_backup(store: Store, file: Path, at: datetime) -> Backup:
    """
    Write manifest, live lake files, what briefs told, policy and config of `store` to `file` (tar, zstd).

    Sealed lake files go in as they are; their key does not. Tables, briefs and staging are not in it: tables
    and briefs are rebuilt, staging is a queue. The file appears whole or not at all, readable by its owner
    only. Only under the lease. Raises StoreNotWritable, and FileDamaged for a store that is not sound.
    """
    parts = _parts(store)
    rows: dict[str, int] = {}
    digests = {name: sha256_of(path) for name, path in sorted(parts.items())}
    for lake_file in store.lake.manifest.files.values():
        if digests.get(f"lake/{lake_file.path}", "") != lake_file.digest != "":
            raise damaged(lake_file, CHANGED)
        rows[lake_file.table] = rows.get(lake_file.table, 0) + lake_file.rows
    backup = Backup(
        version=BACKUP_VERSION,
        made_at=at.isoformat(),
        files=digests,
        rows=rows,
        bytes=sum(path.stat().st_size for path in parts.values()),
    )
    if file.exists() and not file.is_file():
        raise UsageError(f"{file} is not a regular file.", "Name a file that it may replace.")
    with writing_to(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned_parts(file.resolve())
    with writing_to(file.parent), replacing(file.resolve()) as part:
        _write_tar(part, backup, parts)
    return backup


def _parts(store: Store) -> dict[str, Path]:
    home = store.home
    lake = [f"lake/{path}" for path in store.lake.manifest.files]
    named = [MANIFEST_PATH, SHOWN_LINES_PATH, *lake, CONFIG_PATH]
    parts = {name: home / name for name in named if (home / name).is_file()}
    policy = {f"policy/{path.name}": path for path in sorted((home / "policy").glob("*.csv"))}
    return parts | {name: path for name, path in policy.items() if is_part(name)}


def _write_tar(path: Path, backup: Backup, parts: dict[str, Path]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with (
        os.fdopen(descriptor, "wb") as file,
        pa.CompressedOutputStream(pa.PythonFile(file), "zstd") as packed,
        tarfile.open(fileobj=packed, mode="w|", dereference=True) as tar,  # a link to config.toml is its text
    ):
        header = json.dumps(asdict(backup), ensure_ascii=False, indent=1).encode()
        head = tarfile.TarInfo(CONTENTS)
        head.size, head.mode = len(header), 0o600
        tar.addfile(head, io.BytesIO(header))
        for name, part in sorted(parts.items()):
            tar.add(part, arcname=name, recursive=False)
    with path.open("rb") as written:
        sync_file(written.fileno())


# -- Restore: a backup takes the place of a store. The file may come from anyone, so nothing in it is
# believed.

# What takes our text out of the user's own files again, and where hooks find the engine: in no backup, since
# it holds for this machine alone.
NOTES_OF_THIS_MACHINE = (SURFACES_PATH, ENGINE)

# The samples' store shrinks by a tenth, a manifest of 10,000 files to a sixth, zeros to 1/32,000.
MAX_TIMES_PACKED = 100
# A small store is mostly names and padding: this much is taken whatever its packed size.
ALWAYS_BYTES = 16 * 1024 * 1024
# What the lake's files unpack to: 2,000 turns with one prompt of 20,000 characters, from a script, 344 times
# their packed size. So much is taken whatever it is, and of larger stores more: a run reads a table whole.
MAX_TIMES_PLAIN = 1_000
ALWAYS_PLAIN_BYTES = 256 * 1024 * 1024
# The list of files comes first: 170 bytes for each.
LIST_BYTES = 64 * 1024 * 1024
# Headers and padding of one part.
PART_OVERHEAD_BYTES = 8 * 1024
_CHUNK_BYTES = 1024 * 1024
# Rows that are unpacked at once where their size is counted: a long answer has 100 kB, an image's line 2 MB.
BATCH_ROWS = 64


class _Bounded:
    """A stream that ends with ValueError past `limit` bytes, whoever reads on and whatever for."""

    def __init__(self, stream: pa.NativeFile, limit: int) -> None:
        self._stream = stream
        self._read_bytes = 0
        self.limit = limit

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        content: bytes = self._stream.read(size)
        self._read_bytes += len(content)
        if self._read_bytes > self.limit:
            raise ValueError("it unpacks to more than its size and its list of files allow")
        return content


def restore_backup(
    file: Path, home: Path, at: datetime, key_file: Path | None = None
) -> tuple[Backup, Path | None]:
    """
    Check `file` and put it in the place of the store at `home`; return what it says and where the old one is.

    Every name, size, hash and row count is checked outside the store before anything is swapped. A link at
    `home` stays, what it names is replaced. What waits in staging, what holds for this machine, settings and
    policy come along, those of the backup are put next to them; what the old store was told to forget stays
    forgotten. An encrypted backup in a place without settings is read with `key_file`, which its new settings
    then name. Raises NotFound, SchemaMismatch (the file is damaged, no backup of ours, or from a newer
    version), KeyUnavailable and FileDamaged (its lake files are sealed), StoreBusy, StoreNotWritable.
    """
    home = Path(os.path.realpath(home))
    fresh = staging_copy(home)
    with writing_to(home.parent):
        home.parent.mkdir(parents=True, exist_ok=True)
        finish_swap(home)
        shutil.rmtree(fresh, ignore_errors=True)
    try:
        with writing_to(home.parent):
            fresh.mkdir(mode=0o700)  # fails where a link stands there
        backup = _unpacked(file, fresh)
        digest, begun = sha256_of(file), swap_of(home)
        if begun and begun.backup == digest and begun.generation == _generation_of(home):
            # killed before the run that follows
            return backup, home.with_name(begun.previous)
        with writing_to(home.parent):
            disable_settings(fresh, home)  # before the check, which looks for a key where they say
            if key_file and load_settings(fresh).encryption_key_file is None and _is_encrypted(fresh):
                ConfigFile(fresh).set(key_of("encryption.key_file"), str(key_file))
        _check_store(fresh, file)
        with writing_to(home.parent):
            previous = _swap(fresh, home, at, digest)
    finally:
        # Once the old store has moved away this is the only one in its place: finish_swap goes on.
        begun = swap_of(fresh)
        if begun is None or not home.with_name(begun.previous).is_dir():
            shutil.rmtree(fresh, ignore_errors=True)
    return backup, previous


def restore_lake_files(store: Store, files: Sequence[LakeFile]) -> list[LakeFile]:
    """
    Put damaged lake files back, byte for byte, from the backups that the store knows of; return which.

    A file is put back only as what was noted when it was written: whose a backup is does not matter. Only
    under the lease. Raises StoreNotWritable.
    """
    missing = {f"lake/{file.path}": file for file in files if file.digest}
    sound: list[LakeFile] = []
    for copy in outside_copies(store.home):
        if copy.kind != BACKUP_KIND or not missing:
            continue
        into = store.home / TEMPORARY / f"{os.urandom(8).hex()}.{os.getpid()}.tmp"
        with writing_to(store.home), contextlib.suppress(NotFound, SchemaMismatch):
            try:
                into.mkdir(parents=True, mode=0o700)
                backup = _unpacked(Path(copy.place), into)
                for name in [name for name, file in missing.items() if backup.files.get(name) == file.digest]:
                    write_stored(store.home, store.home / name, (into / name).read_bytes())
                    sound.append(missing.pop(name))
            finally:
                shutil.rmtree(into, ignore_errors=True)
    return sound


def _is_encrypted(store: Path) -> bool:
    return next((store / "lake").rglob(f"*{ENCRYPTED}"), None) is not None


def _generation_of(home: Path) -> int | None:
    """Return the generation of the store's manifest, None if it cannot be read."""
    try:
        return read_manifest(home / MANIFEST_PATH).generation
    except (CortexError, OSError):
        return None


def _unpacked(file: Path, into: Path) -> Backup:
    """Unpack a backup, each part checked against its hash. Raises NotFound and SchemaMismatch."""
    try:
        if file.exists() and not file.is_file():
            raise ValueError("not a regular file")
        with (
            file.open("rb") as opened,
            pa.CompressedInputStream(pa.PythonFile(opened), "zstd") as plain,
        ):
            stream = _Bounded(plain, LIST_BYTES)
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]
                backup, digests = _unpack(tar, into, stream, file.stat().st_size)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}.", "Check the path of the backup.") from error
    except (tarfile.TarError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(file, str(error)) from error
    wrong = sorted(name for name, digest in backup.files.items() if digests.get(name) != digest)
    if wrong or set(digests) != set(backup.files):
        raise _damaged(file, f"{', '.join(wrong[:3]) or 'its list of files'} differs from what was written")
    return backup


def _unpack(
    tar: tarfile.TarFile, into: Path, stream: _Bounded, packed_bytes: int
) -> tuple[Backup, dict[str, str]]:
    """Return what the backup says of itself, and the hash of each part written below `into`."""
    head = tar.next()
    if head is None:
        raise ValueError("empty")
    if head.name != CONTENTS:
        raise ValueError("not a Cortex backup")
    backup = _contents(_body(tar, head).read())
    most_bytes = ALWAYS_BYTES + MAX_TIMES_PACKED * packed_bytes
    if backup.bytes > most_bytes:
        raise ValueError(f"its {packed_bytes:,} bytes cannot hold the {backup.bytes:,} it speaks of")
    stream.limit = LIST_BYTES + backup.bytes + PART_OVERHEAD_BYTES * len(backup.files)
    digests: dict[str, str] = {}
    left = backup.bytes
    while (member := tar.next()) is not None:
        if member.name not in backup.files or member.name in digests:
            raise ValueError(f"{member.name!r} is not in its list of files, or appears twice")
        left -= member.size
        if left < 0:
            raise ValueError("its parts are larger than it says")
        with writing_to(into):  # a full disk says nothing about the backup
            digests[member.name] = _write(_body(tar, member), into / member.name)
    return backup, digests


def _contents(raw: bytes) -> Backup:
    """Return what a backup says of itself. Raises ValueError and TypeError if it is malformed."""
    backup = Backup(**json.loads(raw))
    if not isinstance(backup.version, int) or backup.version > BACKUP_VERSION:
        raise ValueError(f"it was written by a newer Cortex (backup version {backup.version})")
    has_lists = isinstance(backup.files, dict) and isinstance(backup.rows, dict)
    counts = [backup.bytes, *backup.rows.values()] if has_lists else [None]
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise ValueError("its list of files is malformed")
    strange = sorted(name for name in backup.files if not is_part(name))
    if strange:
        raise ValueError(f"{strange[0]!r} is not a part of a backup")
    return backup


def _body(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    # A sparse file says its full size and holds nothing.
    body = tar.extractfile(member) if member.isreg() and not member.issparse() else None
    if body is None:
        raise ValueError(f"{member.name!r} is not a regular file")
    return body


def _write(body: IO[bytes], target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with target.open("xb") as out:
        shutil.copyfileobj(body, out, _CHUNK_BYTES)
        out.flush()
        sync_file(out.fileno())
    return sha256_of(target)


def _check_store(fresh: Path, file: Path) -> None:
    """Check the manifest, and that each lake file it names is there with the rows it says."""
    root, vault = fresh / "lake", Vault(fresh)
    try:
        manifest = read_manifest(fresh / MANIFEST_PATH)
        left, names = ALWAYS_PLAIN_BYTES + MAX_TIMES_PLAIN * folder_bytes(root), set[str]()
        for lake_file in manifest.files.values():
            left -= _check_lake_file(lake_file, root, vault, left, names)
        _check_names(fresh, manifest, names)
    except SchemaMismatch as error:
        raise _damaged(file, error.problem.replace(f"{fresh}/", "").rstrip(".")) from error
    except CortexError:
        raise
    except (
        pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError,
    ) as error:  # fmt: skip
        raise _damaged(file, str(error) or "its manifest is none of ours") from error


def _check_lake_file(lake_file: LakeFile, root: Path, vault: Vault, most_bytes: int, names: set[str]) -> int:
    """Return what a lake file unpacks to, at most so many bytes, and add its names of projects to `names`."""
    path = root / lake_file.path
    by_name = re.fullmatch(r"([a-z]+)/[a-z]+=([^/]+)/.*", lake_file.path)
    is_ours = by_name and by_name.groups() == (lake_file.table, lake_file.partition)
    if not is_ours or not is_part(f"lake/{lake_file.path}"):
        raise ValueError(f"{lake_file.path!r} is not a file of the lake")
    source = readable(root, lake_file.path, lake_file.table, vault) if path.is_file() else None
    parquet = None if source is None else pq.ParquetFile(source)
    if parquet is None or parquet.metadata.num_rows != lake_file.rows:
        raise ValueError(f"{lake_file.path} does not have the {lake_file.rows} rows of the manifest")
    # Every row has an id of its own, which takes more than a byte: more rows than bytes were made to fill
    # the memory of who reads them.
    if lake_file.rows > path.stat().st_size:
        raise ValueError(f"{lake_file.path} has more rows than its bytes can hold")
    # Counted, not believed: a text that each row repeats stands in the file once.
    plain_bytes = 0
    for batch in parquet.iter_batches(BATCH_ROWS, use_threads=False):
        plain_bytes += batch.nbytes
        if plain_bytes > most_bytes:
            raise ValueError(f"{lake_file.path} and those before it unpack to more than its bytes can hold")
        if "project_id" in LAKE_TABLES[lake_file.table].arrow.names:
            names.update(map(str, pc.unique(batch["project_id"]).to_pylist()))
    return plain_bytes


def _check_names(fresh: Path, manifest: Manifest, names: set[str]) -> None:
    """Check that every name of a project is a folder's name: paths are made of them."""
    names.update(cursor.project_id for cursor in manifest.cursors.values())
    names.update(manifest.notes.to_wipe, *manifest.notes.grown.values())
    journal = Store(fresh).lake.read(schemas.JOURNAL, columns=["kind", "payload"])
    merges = (entry.merged_into for _, entry in entries_in(journal, ProjectMerge))
    names.update(str(into) for into in merges if into)
    strange = sorted(name for name in names if not re.fullmatch(NAME, name, re.ASCII))
    if strange:
        raise ValueError(f"{strange[0]!r} is not the name of a project")


def _swap(fresh: Path, home: Path, at: datetime, digest: str) -> Path | None:
    """Put the checked store in place under the old one's lease; projections are to be rebuilt."""
    manifest_path = fresh / MANIFEST_PATH
    manifest = read_manifest(manifest_path)
    manifest.notes = manifest.notes.without_projections()
    write_manifest(manifest_path, manifest)
    if not home.exists() or not any(home.iterdir()):
        put_in_place(fresh, home)
        return None
    previous = _place_of_old(home, at)
    with lease(home), lease(fresh):  # the second keeps finish_swap away between the renames
        old, new = Store(home), Store(fresh)
        _carry_forget_requests(old, new)
        new.shown_lines.add(old.shown_lines)
        _carry_what_waits(old, new)
        for name in NOTES_OF_THIS_MACHINE:
            if (home / name).is_file():
                shutil.copy2(home / name, fresh / name)
        note_swap(fresh, Swap(previous.name, digest, manifest.generation))
        home.replace(previous)
        put_in_place(fresh, home)
        _carry_what_waits(Store(previous), Store(home))  # what came after the first copy
    sync(home.parent)
    return previous


def _place_of_old(home: Path, at: datetime) -> Path:
    """Return a name that is free: two restores may begin within a second."""
    name = f"{home.name}.before-restore-{at:%Y%m%dT%H%M%S}"
    count = len(list(home.parent.glob(f"{name}*")))
    return home.with_name(f"{name}-{count + 1}" if count else name)


def _carry_forget_requests(old: Store, new: Store) -> None:
    """Let the restored store forget what the old one was told to forget since the backup was made."""
    known = set(values(new.journal.read(), "entry_id"))
    for row in requests_in(old.journal.read(), known):
        new.journal.write(row)


def _carry_what_waits(old: Store, new: Store) -> None:
    """Copy the queue; the journal's entries are rewritten, encrypted or not as in the other store."""
    for row in old.journal.waiting():
        new.journal.write(row)
    if old.staging.root.is_dir():
        shutil.copytree(old.staging.root, new.staging.root, dirs_exist_ok=True, ignore=_not_carried)


def _not_carried(folder: str, names: list[str]) -> list[str]:
    paths = [Path(folder, name) for name in names]
    kept = (stat.S_IFREG, stat.S_IFDIR)  # copying a pipe would never end
    return [p.name for p in paths if p.name == JOURNAL_FOLDER or stat.S_IFMT(p.lstat().st_mode) not in kept]


def _damaged(file: Path, reason: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"{file} is not a whole backup: {reason}.", "Nothing was changed. Try another backup."
    )
