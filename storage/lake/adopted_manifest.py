"""Adoption: a manifest made from the lake files themselves; those that cannot be used leave the store."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cortex.storage.filesystem.files import sync, writing_to
from cortex.storage.lake.encryption import ENCRYPTED, Vault, key_id_of
from cortex.storage.lake.lake_files import UNREADABLE, Label, files_below, label_of
from cortex.storage.lake.manifest import LakeFile, Manifest, ManifestNotes, read_manifest
from cortex.transforms.errors import FileDamaged, LakeUnclear, ManifestDamaged


def quarantine_files(home: Path, paths: Iterable[str], at: datetime) -> Path | None:
    """
    Move lake files to `<home>.set-aside-<time>/lake/`; return that folder, None without files.

    Not into the store: what a person forgets must be gone from all of it, and what cannot be read cannot be
    searched. Only under the lease. Raises StoreNotWritable.
    """
    listed = sorted(paths)
    if not listed:
        return None
    folder = home.with_name(f"{home.name}.set-aside-{at:%Y%m%dT%H%M%S}")
    with writing_to(home.parent):
        for path in listed:
            target = folder / "lake" / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(home / "lake" / path, target)
            sync(target.parent)
    return folder


# -- Adoption: a manifest made from the lake files themselves, where theirs is lost or is another's.

NAMED = 3
DAMAGED_MANIFEST = "manifest.damaged.json"


@dataclass(frozen=True)
class LakeFiles:
    """
    The lake files on disk: those that say what they are, and those of which it cannot be known.

    `labels` holds each readable file's label (None: it has none) and rows, `damaged` the others' reasons.
    """

    labels: Mapping[str, tuple[Label | None, int]] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)

    def unclear(self) -> list[str]:
        """Return the files without a label that do not stand alone in their partition: which counts?"""
        return sorted(
            path
            for path, (label, _) in self.labels.items()
            if label is None and sum(_folder(other) == _folder(path) for other in self.labels) > 1
        )


def lake_files_in(home: Path) -> LakeFiles:
    """Return what the lake files of the store at `home` say of themselves. Raises KeyUnavailable."""
    root, vault = home / "lake", Vault(home)
    labels: dict[str, tuple[Label | None, int]] = {}
    damaged: dict[str, str] = {}
    for path in sorted(files_below(root)):
        try:
            labels[path] = label_of(root, path, vault)
        except (FileDamaged, *UNREADABLE) as error:
            damaged[path] = type(error).__name__
    return LakeFiles(labels, damaged)


def adopted(home: Path) -> Manifest:
    """
    Return a manifest of the lake files as they lie there: what newer files replaced is named as replaced.

    It has no cursors and no notes of stages: transcripts are read again, which brings in nothing twice, and
    tables are rebuilt. Raises LakeUnclear if a file is damaged, or if which of several counts cannot
    be known; SchemaMismatch for a manifest of a newer Cortex, which is left alone.
    """
    foreign = lake_files_in(home)
    if doubtful := {**foreign.damaged, **dict.fromkeys(foreign.unclear(), "without a label")}:
        named = ", ".join(f"{path} ({why})" for path, why in sorted(doubtful.items())[:NAMED])
        raise LakeUnclear(
            f"{len(doubtful)} files of the lake cannot be adopted: {named}. Nothing was changed.",
            "Restore a backup (cortex restore FILE), or move these files out of the store and continue: "
            "cortex rebuild --adopt-lake --set-aside",
        )
    files = [_as_file(path, label, rows) for path, (label, rows) in foreign.labels.items()]
    live = {file.path: file for file in _counting(files, foreign.labels)}
    generation = max([_generation_of(home), *(file.generation for file in files)], default=0)
    manifest = Manifest(generation=generation, files=live)
    manifest.replaced = frozenset(foreign.labels) - frozenset(live)
    if encrypted := next((path for path in live if path.endswith(ENCRYPTED)), None):
        key_id = key_id_of((home / "lake" / encrypted).read_bytes(), encrypted)
        manifest.notes = ManifestNotes(encrypted_with=key_id)
    return manifest


def move_damaged_manifest(home: Path) -> None:
    """Rename a manifest that cannot be read, so that a new one can take its place."""
    path = home / "runs" / "manifest.json"
    try:
        read_manifest(path)
    except ManifestDamaged:
        path.replace(path.with_name(DAMAGED_MANIFEST))


def _generation_of(home: Path) -> int:
    try:
        return read_manifest(home / "runs" / "manifest.json").generation
    except ManifestDamaged:
        return 0


def _as_file(path: str, label: Label | None, rows: int) -> LakeFile:
    """Return a file as a manifest names it; one without a label by its name alone."""
    if label is not None:
        return LakeFile(path, label.table, label.partition, rows, label.generation, label.sessions)
    table, folder, name = path.split("/")
    return LakeFile(path, table, folder.partition("=")[2], rows, int(name.partition("-")[0]))


def _counting(
    files: Iterable[LakeFile], labels: Mapping[str, tuple[Label | None, int]]
) -> Iterable[LakeFile]:
    """Yield the files that no newer one of their partition replaced, as a commit would have kept them."""
    partitions: dict[str, list[LakeFile]] = {}
    for file in sorted(files, key=lambda file: (file.generation, file.path), reverse=True):
        partitions.setdefault(_folder(file.path), []).append(file)
    for newest_first in partitions.values():
        seen: set[str] = set()
        oldest = max((f.generation for f in newest_first if _is_whole(f, labels)), default=0)
        for file in newest_first:
            if file.generation < oldest or (file.sessions and set(file.sessions) <= seen):
                continue
            seen.update(file.sessions)
            yield file


def _is_whole(file: LakeFile, labels: Mapping[str, tuple[Label | None, int]]) -> bool:
    label, _ = labels[file.path]
    return label is not None and label.is_whole


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
