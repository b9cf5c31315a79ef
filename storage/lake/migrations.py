"""Migrations: numbered steps from one layout of the store to the next, each applied once, checked first."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.storage.ground.files import writing_to
from cortex.storage.lake.encryption import ENCRYPTED, Vault
from cortex.storage.lake.lake_files import Label, Unfinished, lake_digest, readable, write_rows
from cortex.storage.lake.manifest import (
    MANIFEST_VERSION,
    LakeFile,
    Manifest,
    read_manifest,
    write_manifest,
)
from cortex.transforms.errors import SchemaMismatch
from cortex.transforms.identity import content_id


@dataclass(frozen=True)
class Migration:
    """
    One step: `number` is the store's version after it, `rows` makes the new rows of one lake file.

    `rows` gets the table's name and its rows as the last version wrote them. It must neither lose nor add a
    row, and must leave the columns of `keys` (by table) as they are: both are checked for every file.
    """

    number: int
    name: str
    rows: Callable[[str, pa.Table], pa.Table]
    keys: dict[str, tuple[str, ...]]


# The first release writes version 1: there is nothing older to come from yet.
MIGRATIONS: tuple[Migration, ...] = ()


def migrate(
    home: Path, migrations: Sequence[Migration] = MIGRATIONS, version: int = MANIFEST_VERSION
) -> list[str]:
    """
    Bring the store at `home` to `version`, step by step; return the names of the steps taken.

    Each step writes new files and replaces the manifest last, so a kill leaves the
    version before or the version after. The files of the version before stay until the run that follows has
    published. Only under the lease. Raises SchemaMismatch if a step is missing, loses rows, or the store
    is newer than this Cortex.
    """
    manifest = read_manifest(home / "runs" / "manifest.json", any_version=True)
    taken = []
    for step in sorted(migrations, key=lambda m: m.number):
        if manifest.generation and manifest.version < step.number <= version:
            with writing_to(home):
                manifest = _apply(home, manifest, step)
            taken.append(step.name)
    if manifest.generation and manifest.version != version:
        raise SchemaMismatch(
            f"the store has version {manifest.version} and this Cortex writes {version}.",
            "Install the version of Cortex that wrote it.",
        )
    return taken


def _apply(home: Path, before: Manifest, step: Migration) -> Manifest:
    after = before.copy()
    after.generation += 1
    after.version = step.number
    after.files = {}
    vault, key_id = Vault(home), after.notes.encrypted_with
    for file in before.files.values():
        rewritten = _rewritten(home / "lake", file, step, after.generation, vault, key_id)
        after.files[rewritten.path] = rewritten
    after.notes = after.notes.without_projections()
    after.replaced = before.replaced | frozenset(before.files)
    write_manifest(home / "runs" / "manifest.json", after)
    Unfinished(home).clear()
    return after


def _rewritten(
    lake: Path, file: LakeFile, step: Migration, generation: int, vault: Vault, key_id: str | None
) -> LakeFile:
    rows = pq.read_table(readable(lake, file.path, file.table, vault), partitioning=None)
    migrated = step.rows(file.table, rows)
    key = step.keys.get(file.table, ())
    if migrated.num_rows != file.rows or _digest(migrated, key) != _digest(rows, key):
        raise SchemaMismatch(
            f"migration {step.number} ({step.name}) would change {file.rows} rows of {file.path} "
            f"into {migrated.num_rows} others.",
            "Nothing was changed. Report this message; the previous version can still open the store.",
        )
    folder = file.path.rsplit("/", 1)[0]
    path = f"{folder}/{generation:08d}-{content_id(file.path)[:12]}.parquet"
    if key_id:
        path += ENCRYPTED
    Unfinished(lake.parent).note(generation, path)
    label = Label(file.table, file.partition, file.generation, file.sessions)
    write_rows(lake, path, label, migrated, vault, key_id)
    return replace(file, path=path, digest=lake_digest(lake / path, reads_again=True))


def _digest(rows: pa.Table, key: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in key:
        for value in rows[name].to_pylist():
            digest.update(repr(value).encode())
    return digest.hexdigest()
