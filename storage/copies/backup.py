"""Backup: the truth of a store in one file, with the hash of each part of it inside."""

import hashlib
import io
import json
import os
import re
import tarfile
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from cortex.storage.ground.files import remove_abandoned_parts, replacing, writing_to
from cortex.storage.lake.lake import LAKE_TABLES
from cortex.storage.published.shown_lines import SHOWN_LINES_PATH
from cortex.storage.store import Store
from cortex.transforms.errors import UsageError

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
    only. Only under the lease. Raises StoreNotWritable.
    """
    parts = _parts(store)
    rows: dict[str, int] = {}
    for lake_file in store.lake.manifest.files.values():
        rows[lake_file.table] = rows.get(lake_file.table, 0) + lake_file.rows
    backup = Backup(
        version=BACKUP_VERSION,
        made_at=at.isoformat(),
        files={name: sha256_of(path) for name, path in sorted(parts.items())},
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
        os.fsync(written.fileno())


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
