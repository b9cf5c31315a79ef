"""Backup and restore: the truth of a store in one file, with the hash of each part of it inside."""

import hashlib
import io
import json
import os
import shutil
import tarfile
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.errors import NotFound, SchemaMismatch
from cortex.hooks.background import ENGINE
from cortex.storage.client_files import NOTES_PATH
from cortex.storage.encryption import Vault
from cortex.storage.files import PART_SUFFIX, replacing, sync_folder, writing_to
from cortex.storage.lake_files import readable
from cortex.storage.lease import lease
from cortex.storage.manifest import read_manifest, write_manifest
from cortex.storage.migrations import migrate
from cortex.storage.staging import JOURNAL
from cortex.storage.store import Store
from cortex.storage.surface import SURFACES_PATH
from cortex.storage.told import TOLD_PATH
from cortex.transforms.forgetting import wishes_in
from cortex.transforms.schemas import values

BACKUP_VERSION = 1
CONTENTS = "backup.json"

# What takes our text out of the user's own files again, and where hooks find the engine: in no backup, since
# it holds for this machine alone.
NOTES_OF_THIS_MACHINE = (SURFACES_PATH, NOTES_PATH, ENGINE)


@dataclass(frozen=True)
class Backup:
    """What a backup file says of itself: sha256 and rows by path and table."""

    version: int
    made_at: str
    files: dict[str, str]
    rows: dict[str, int]
    bytes: int


def write_backup(store: Store, file: Path, at: datetime) -> Backup:
    """
    Write manifest, live lake files, what briefs told, policy and config of `store` to `file` (tar, zstd).

    Sealed lake files go in as they are; their key does not. Tables, briefs and staging are not in it: tables
    and briefs are made anew, staging is a queue. The file appears whole or not at all, readable by its owner
    only. Only under the lease. Raises StoreNotWritable.
    """
    parts = _parts(store)
    rows: dict[str, int] = {}
    for lake_file in store.lake.manifest.files.values():
        rows[lake_file.table] = rows.get(lake_file.table, 0) + lake_file.rows
    made = Backup(
        version=BACKUP_VERSION,
        made_at=at.isoformat(),
        files={name: _sha256(path) for name, path in sorted(parts.items())},
        rows=rows,
        bytes=sum(path.stat().st_size for path in parts.values()),
    )
    with writing_to(file.parent), replacing(file.absolute()) as part:
        _write_tar(part, made, parts)
    return made


def _parts(store: Store) -> dict[str, Path]:
    home = store.home
    lake = [f"lake/{path}" for path in store.lake.manifest.files]
    named = ["runs/manifest.json", TOLD_PATH, *lake, "config.toml"]
    parts = {name: home / name for name in named if (home / name).is_file()}
    policy = sorted((home / "policy").glob("*.csv"))
    return parts | {f"policy/{path.name}": path for path in policy}


def _write_tar(path: Path, made: Backup, parts: dict[str, Path]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with (
        os.fdopen(descriptor, "wb") as file,
        pa.CompressedOutputStream(pa.PythonFile(file), "zstd") as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        told = json.dumps(asdict(made), ensure_ascii=False, indent=1).encode()
        head = tarfile.TarInfo(CONTENTS)
        head.size, head.mode = len(told), 0o600
        tar.addfile(head, io.BytesIO(told))
        for name, part in sorted(parts.items()):
            tar.add(part, arcname=name, recursive=False)
    with path.open("rb") as written:
        os.fsync(written.fileno())


def restore_backup(file: Path, home: Path, at: datetime) -> tuple[Backup, Path | None]:
    """
    Check `file` and put it in the place of the store at `home`; return what it says and where the old one is.

    Every hash and row count is checked beside the store before anything is swapped. What waits in staging
    and what holds for this machine come along, and what the old store was told to forget stays forgotten.
    Raises NotFound, SchemaMismatch (the file is damaged, or from a newer version), KeyUnavailable and
    FileDamaged (its lake files are sealed), StoreBusy, StoreNotWritable.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = home.with_name(f".{home.name}.restoring{PART_SUFFIX}")
    with writing_to(home.parent):
        _undo_half_a_swap(fresh, home)
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            made = _unpacked(file, fresh)
            _check_rows(fresh, file)
            migrate(fresh)
            previous = _swap(fresh, home, at)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return made, previous


def _undo_half_a_swap(fresh: Path, home: Path) -> None:
    """Put the old store back where a kill left neither: it alone knows what was forgotten since."""
    beside = sorted(home.parent.glob(f"{home.name}.before-restore-*"))
    if beside and fresh.is_dir() and not home.exists():
        beside[-1].replace(home)


def _unpacked(file: Path, into: Path) -> Backup:
    """Unpack a backup, each part checked against its hash. Raises NotFound and SchemaMismatch."""
    try:
        with (
            file.open("rb") as opened,
            pa.CompressedInputStream(pa.PythonFile(opened), "zstd") as plain,
            tarfile.open(fileobj=plain, mode="r|") as tar,
        ):
            made, seen = _unpack(tar, into)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}.", "Check the path of the backup.") from error
    except (tarfile.TarError, OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(file, str(error)) from error
    wrong = sorted(name for name, digest in made.files.items() if seen.get(name) != digest)
    if wrong or set(seen) != set(made.files):
        raise _damaged(file, f"{', '.join(wrong[:3]) or 'its list of files'} differs from what was written")
    return made


def _unpack(tar: tarfile.TarFile, into: Path) -> tuple[Backup, dict[str, str]]:
    made: Backup | None = None
    seen: dict[str, str] = {}
    for member in tar:
        body = tar.extractfile(member)
        if body is None:
            raise ValueError(f"{member.name} is no file")
        if made is None:
            if member.name != CONTENTS:
                raise ValueError("no Cortex backup")
            made = Backup(**json.loads(body.read()))
            if made.version > BACKUP_VERSION:
                raise ValueError(f"made by a newer Cortex (backup version {made.version})")
            continue
        if member.name not in made.files or ".." in PurePosixPath(member.name).parts:
            raise ValueError(f"{member.name} is not in its list of files")
        target = into / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            shutil.copyfileobj(body, out)
            out.flush()
            os.fsync(out.fileno())
        seen[member.name] = _sha256(target)
    if made is None:
        raise ValueError("empty")
    return made, seen


def _check_rows(fresh: Path, file: Path) -> None:
    """Check that each lake file the manifest names is there with the rows it says."""
    root, vault = fresh / "lake", Vault(fresh)
    for lake_file in read_manifest(fresh / "runs" / "manifest.json", any_version=True).files.values():
        is_there = (root / lake_file.path).is_file()
        source = readable(root, lake_file.path, lake_file.table, vault) if is_there else None
        if source is None or pq.read_metadata(source).num_rows != lake_file.rows:
            raise _damaged(file, f"{lake_file.path} has not the {lake_file.rows} rows of the manifest")


def _swap(fresh: Path, home: Path, at: datetime) -> Path | None:
    """Put the checked store in place under the old one's lease; projections are to be made anew."""
    manifest_path = fresh / "runs" / "manifest.json"
    manifest = read_manifest(manifest_path)
    manifest.forget_projections()
    write_manifest(manifest_path, manifest)
    if not home.exists() or not any(home.iterdir()):
        if home.exists():
            home.rmdir()
        fresh.replace(home)
        return None
    previous = home.with_name(f"{home.name}.before-restore-{at:%Y%m%dT%H%M%S}")
    with lease(home / "runs"):
        old, new = Store(home), Store(fresh)
        _carry_wishes(old, new)
        new.telling.add(old.telling)
        _carry_what_waits(old, new)
        for name in NOTES_OF_THIS_MACHINE:
            if (home / name).is_file():
                shutil.copy2(home / name, fresh / name)
        home.replace(previous)
        fresh.replace(home)
    sync_folder(home.parent)
    return previous


def _carry_wishes(old: Store, new: Store) -> None:
    """Let the restored store forget what the old one was told to forget since the backup was made."""
    known = set(values(new.journal.read(), "entry_id"))
    for row in wishes_in(old.journal.read(), known):
        new.journal.write(row)


def _carry_what_waits(old: Store, new: Store) -> None:
    """Copy the queue; the journal's entries are written anew, sealed or in clear as the other store is."""
    for row in old.journal.waiting():
        new.journal.write(row)
    if old.staging.root.is_dir():
        skipped = shutil.ignore_patterns(JOURNAL)
        shutil.copytree(old.staging.root, new.staging.root, dirs_exist_ok=True, ignore=skipped)


def _damaged(file: Path, reason: str) -> SchemaMismatch:
    return SchemaMismatch(f"{file} is no whole backup: {reason}.", "Nothing was changed. Try another backup.")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
