"""The manifest: which lake files count, how far each transcript was read, what runs noted."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from cortex.storage.ground.files import write_atomically
from cortex.storage.ground.place import commit_elsewhere
from cortex.storage.lake.notes import ManifestNotes
from cortex.transforms.errors import ManifestDamaged, SchemaMismatch

MANIFEST_VERSION = 1

# Where this Cortex writes lake files. What has another name is not ours: it is neither read nor removed, and
# a manifest that was tampered with reaches nothing outside the lake.
_LAKE_FILE = re.compile(r"[a-z]+/(?:project|model)=[^/]+/\d{8,}-[0-9a-f]{12}\.parquet(?:\.aes)?")


def is_lake_file(path: str) -> bool:
    """Return whether `path`, relative to the lake, has the form of a file that this Cortex writes."""
    return _LAKE_FILE.fullmatch(path) is not None


@dataclass(frozen=True)
class LakeFile:
    """One live Parquet file of the lake; `sessions` lists those it holds whole, shadowing older files."""

    path: str  # relative to lake/, with forward slashes
    table: str
    partition: str
    rows: int
    generation: int
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cursor:
    """How far a transcript was read: whole lines only; `head` tells whether it is still the same file."""

    read_bytes: int
    read_lines: int
    head: str
    head_bytes: int
    project_id: str
    session_id: str | None


class LiveFiles(dict[str, LakeFile]):
    """The lake's files by path; those of a partition are found without looking at all others."""

    def __init__(self, files: Mapping[str, LakeFile] = MappingProxyType({})) -> None:
        super().__init__(files)
        self._grouped: dict[str, dict[str, list[LakeFile]]] | None = None

    def __setitem__(self, path: str, file: LakeFile) -> None:
        """Add a file."""
        self._grouped = None
        super().__setitem__(path, file)

    def __delitem__(self, path: str) -> None:
        """Take a file out."""
        self._grouped = None
        super().__delitem__(path)

    def by_partition(self, table: str) -> Mapping[str, list[LakeFile]]:
        """Return the files of a table by partition, each partition's oldest first."""
        if self._grouped is None:
            self._grouped = {}
            for file in sorted(self.values(), key=lambda f: (f.generation, f.path)):
                self._grouped.setdefault(file.table, {}).setdefault(file.partition, []).append(file)
        return self._grouped.get(table, {})


@dataclass
class Manifest:
    """
    What the store holds; replaced as a whole, last in every commit.

    `replaced` names files that counted once, or were written for a commit that never came: what a sweep may
    remove. Every other file of the lake is someone's truth.
    """

    generation: int = 0
    files: dict[str, LakeFile] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    notes: ManifestNotes = field(default_factory=ManifestNotes)
    version: int = MANIFEST_VERSION
    replaced: frozenset[str] = frozenset()

    def live(self, table: str, partition: str | None = None) -> list[LakeFile]:
        """Return the live files of a table (of one partition), oldest first."""
        by_partition = self._grouped().by_partition(table)
        if partition is not None:
            return list(by_partition.get(partition, ()))
        return sorted(chain.from_iterable(by_partition.values()), key=lambda f: (f.generation, f.path))

    def partitions(self, table: str) -> list[str]:
        """Return the partitions of a table that have a live file, sorted."""
        return sorted(self._grouped().by_partition(table))

    def _grouped(self) -> LiveFiles:
        if not isinstance(self.files, LiveFiles):
            self.files = LiveFiles(self.files)
        return self.files

    def copy(self) -> "Manifest":
        """Return a copy to change before it is committed."""
        return replace(self, files=LiveFiles(self.files), cursors=dict(self.cursors))


def read_manifest(path: Path, *, any_version: bool = False) -> Manifest:
    """
    Return the manifest at `path`, an empty one if there is none.

    Raises ManifestDamaged for what is not a manifest, SchemaMismatch for a version that is not this one
    unless `any_version`: versions before it are brought up by `migrate`.
    """
    try:
        raw = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Manifest()
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is not JSON") from error
    except OSError as error:
        raise _damaged(path, f"it cannot be read ({(error.strerror or 'input error').lower()})") from error
    if not isinstance(raw, dict):
        raise _damaged(path, "it is not an object")
    version = raw.get("version")
    if version != MANIFEST_VERSION and not (any_version and isinstance(version, int)):
        is_older = isinstance(version, int) and version < MANIFEST_VERSION
        raise SchemaMismatch(
            f"the store has version {version}, this Cortex reads {MANIFEST_VERSION}.",
            "Bring it up to date: cortex run" if is_older else "Install the version of Cortex that wrote it.",
        )
    try:
        return _parsed(raw, version)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise _damaged(path, "its entries were not written by Cortex") from error


Kind = TypeVar("Kind", LakeFile, Cursor)


def _parsed(raw: Mapping[str, Any], version: int) -> Manifest:
    notes = ManifestNotes.of_texts({name: _text(value) for name, value in raw["stages"].items()})
    files = {name: _lake_file(name, entry) for name, entry in raw["files"].items()}
    cursors = {file: _of_types(Cursor, entry) for file, entry in raw["cursors"].items()}
    replaced = frozenset(_own_path(name) for name in raw.get("replaced", ()))
    return Manifest(_count(raw["generation"]), files, cursors, notes, version, replaced)


def _lake_file(name: str, entry: Mapping[str, Any]) -> LakeFile:
    sessions = tuple(_text(session) for session in entry["sessions"])
    return _of_types(LakeFile, {**entry, "path": _own_path(name), "sessions": sessions})


def _of_types(kind: type[Kind], entry: Mapping[str, Any]) -> Kind:
    """Return the entry as `kind`. Raises TypeError for a missing or unknown field, or one of another type."""
    parsed = kind(**entry)
    for each in fields(kind):
        value = getattr(parsed, each.name)
        if each.type is int:
            _count(value)
        elif each.type is str or (each.name == "session_id" and value is not None):
            _text(value)
    return parsed


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a count")
    return value


def _own_path(name: object) -> str:
    if not isinstance(name, str) or not is_lake_file(name):
        raise ValueError("not a file of the lake")
    return name


def _damaged(path: Path, why: str) -> ManifestDamaged:
    return ManifestDamaged(
        f"{path} is damaged: {why}.",
        "Restore a backup (cortex restore FILE), or rebuild it from the lake's files: "
        "cortex rebuild --adopt-lake",
    )


def write_manifest(path: Path, manifest: Manifest) -> None:
    """
    Replace the manifest at `path`; this is the moment at which a commit happens.

    That of a copy is committed where the store is first. Raises LeaseLost and StoreUnreachable.
    """
    import orjson

    raw = {
        "version": manifest.version,
        "generation": manifest.generation,
        "files": {
            name: {
                "table": f.table,
                "partition": f.partition,
                "rows": f.rows,
                "generation": f.generation,
                "sessions": list(f.sessions),
            }
            for name, f in sorted(manifest.files.items())
        },
        "cursors": {name: vars(cursor) for name, cursor in sorted(manifest.cursors.items())},
        "stages": manifest.notes.as_texts(),
        "replaced": sorted(manifest.replaced),
    }
    content = orjson.dumps(raw, option=orjson.OPT_INDENT_2)
    commit_elsewhere(path.parent.parent, manifest.files, manifest.notes.encrypted_with, content)
    write_atomically(path, content)
