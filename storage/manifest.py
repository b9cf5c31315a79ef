"""The manifest: which lake files count, how far each transcript was read, what each stage last made."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from cortex.errors import SchemaMismatch
from cortex.storage.files import write_atomically

MANIFEST_VERSION = 1

# Stages that make what can be made anew from the lake.
PROJECTIONS = frozenset({"embed", "link", "decay", "made_by", "consolidate", "render", "publish"})


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


@dataclass
class Manifest:
    """What the store holds; replaced as a whole, last in every commit."""

    generation: int = 0
    files: dict[str, LakeFile] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    version: int = MANIFEST_VERSION

    def live(self, table: str, partition: str | None = None) -> list[LakeFile]:
        """Return the live files of a table (of one partition), oldest first."""
        found = [f for f in self.files.values() if f.table == table and partition in (None, f.partition)]
        return sorted(found, key=lambda f: (f.generation, f.path))

    def partitions(self, table: str) -> list[str]:
        """Return the partitions of a table that have a live file, sorted."""
        return sorted({f.partition for f in self.files.values() if f.table == table})

    def forget_projections(self) -> None:
        """Drop the notes that say that tables and published files are made: the next run makes them anew."""
        self.stages = {n: v for n, v in self.stages.items() if n.partition(":")[0] not in PROJECTIONS}

    def copy(self) -> "Manifest":
        """Return a copy to change before it is committed."""
        files, cursors, stages = dict(self.files), dict(self.cursors), dict(self.stages)
        return Manifest(self.generation, files, cursors, stages, self.version)


def read_manifest(path: Path, *, any_version: bool = False) -> Manifest:
    """
    Return the manifest at `path`, an empty one where there is none.

    Raises SchemaMismatch, also for another version than this Cortex writes unless `any_version`: versions
    before it are brought up by `migrate`.
    """
    try:
        raw = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Manifest()
    except ValueError as error:
        raise SchemaMismatch(
            f"{path} is not readable as JSON.",
            "Restore it from a backup of the store; it is written atomically.",
        ) from error
    version = raw.get("version")
    if version != MANIFEST_VERSION and not (any_version and isinstance(version, int)):
        is_older = isinstance(version, int) and version < MANIFEST_VERSION
        raise SchemaMismatch(
            f"the store has version {version}, this Cortex reads {MANIFEST_VERSION}.",
            "Bring it up to date: cortex run" if is_older else "Install the version of Cortex that wrote it.",
        )
    return Manifest(
        generation=raw["generation"],
        files={
            path: LakeFile(path, **{**entry, "sessions": tuple(entry["sessions"])})
            for path, entry in raw["files"].items()
        },
        cursors={file: Cursor(**entry) for file, entry in raw["cursors"].items()},
        stages=raw["stages"],
        version=version,
    )


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace the manifest at `path`; this is the moment at which a commit happens."""
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
        "stages": dict(sorted(manifest.stages.items())),
    }
    write_atomically(path, json.dumps(raw, ensure_ascii=False, indent=1).encode())
