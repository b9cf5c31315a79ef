"""
One Parquet file of the lake, encrypted or not: written whole, noted until committed, read only as it was
written.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from cortex.hooks.ticket import sync_file
from cortex.storage.filesystem.files import replacing_stored, sha256_of, sync, write_stored
from cortex.storage.lake.encryption import ENCRYPTED, Vault
from cortex.storage.lake.manifest import LakeFile, is_lake_file
from cortex.transforms.errors import FileDamaged, LakeUnclear, SchemaMismatch
from cortex.transforms.schemas import VECTORS, Table

# Under this name a file says in its own footer what the manifest says of it.
LABEL = b"cortex_lake"

# Why a file is not read of which another content was noted.
CHANGED = "cannot be read (it is not as it was written)"

# What reading a damaged Parquet file raises.
UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError)


@dataclass(frozen=True)
class Label:
    """
    What a lake file says of itself, so that a lost manifest can be rebuilt from the files.

    `sessions` are held whole by it; `is_whole` means that it stands for all older files of its partition.
    """

    table: str
    partition: str
    generation: int
    sessions: tuple[str, ...] = ()
    is_whole: bool = False


def label_of(root: Path, path: str, vault: Vault) -> tuple[Label | None, int]:
    """
    Return a lake file's label, None if it has none, and its number of rows; every byte of it is read.

    Raises FileDamaged and KeyUnavailable for a sealed file, one of UNREADABLE for a damaged one.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(readable(root, path, path.partition("/")[0], vault))
    rows = sum(batch.num_rows for batch in file.iter_batches())
    content = (file.metadata.metadata or {}).get(LABEL)
    if content is None:
        return None, rows
    fields = json.loads(content)
    return Label(**{**fields, "sessions": tuple(fields["sessions"])}), rows


# The digests of files as this process last read them, by path, with size, time and inode of then.
_digests: dict[Path, tuple[tuple[int, int, int], str]] = {}


def lake_digest(path: Path, *, reads_again: bool) -> str:
    """Return the SHA-256 of a lake file; unless it `reads_again`, as this process knows it from before."""
    status = path.stat()
    seen = status.st_size, status.st_mtime_ns, status.st_ino
    known = _digests.get(path)
    if reads_again or known is None or known[0] != seen:
        known = _digests[path] = seen, sha256_of(path)
    return known[1]


def damage_of(root: Path, file: LakeFile, vault: Vault) -> str | None:
    """
    Return why a lake file cannot be used, None for a sound one; every byte of it is read.

    Raises KeyUnavailable for a sealed one of which no digest was noted.
    """
    try:
        if file.digest:
            return None if lake_digest(root / file.path, reads_again=True) == file.digest else CHANGED
        label_of(root, file.path, vault)
    except FileNotFoundError:
        return "is missing"
    except (FileDamaged, *UNREADABLE) as error:
        return f"cannot be read ({type(error).__name__})"
    return None


def files_below(root: Path) -> Iterator[str]:
    """Yield the paths of the lake files on disk, relative to the lake `root`."""
    for path in root.glob("*/*/*"):
        name = path.relative_to(root).as_posix()
        if is_lake_file(name) and path.is_file():
            yield name


def readable(root: Path, path: str, table: str, vault: Vault) -> Path | pa.BufferReader:
    """
    Return what Arrow reads for the lake file `path` of `table`: the file, or its content without the seal.

    A sealed file is checked before any of it is used. Raises FileNotFoundError, FileDamaged, KeyUnavailable.
    """
    if not path.endswith(ENCRYPTED):
        return root / path
    return pa.BufferReader(vault.decrypted_bytes((root / path).read_bytes(), place_of(path, table)))


def write_rows(root: Path, path: str, label: Label, rows: pa.Table, vault: Vault, key_id: str | None) -> None:
    """Write `rows` to the lake file `path`, durable; if named as encrypted, no plain bytes reach the disk."""
    import pyarrow.parquet as pq

    named = {LABEL: json.dumps(asdict(label), ensure_ascii=False).encode()}
    rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **named})
    if not path.endswith(ENCRYPTED):
        with replacing_stored(root.parent, root / path) as part:
            pq.write_table(rows, part, compression="zstd")
        return
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    encrypted = vault.encrypted_bytes(sink.getvalue().to_pybytes(), place_of(path, label.table), key_id or "")
    write_stored(root.parent, root / path, encrypted)


def place_of(path: str, table: str) -> str:
    """Return what a sealed lake file is bound to: anywhere else, or as another table, it is refused."""
    return f"lake/{path} {table}"


# -- Which lake files are being written for a commit that has not come yet: `runs/writing`.


class Unfinished:
    """
    Lines of generation and path, each on disk before its file: what a killed run leaves is known by name.

    Nothing else tells a leftover of ours from a file that somebody put into the lake.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "runs" / "writing"

    def note(self, generation: int, path: str) -> None:
        """Note that the lake file `path` is about to be written for a commit. Only under the lease."""
        is_new = not self._path.exists()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{generation} {path}\n".encode())
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            sync(self._path.parent)

    def paths(self, generation: int) -> frozenset[str]:
        """
        Return the files written for the commit `generation`; of any other nothing is known.

        Older ones were settled by their commit. Newer ones come from after this manifest, which somebody put
        back: they may hold what a later manifest names.
        """
        return frozenset(path for noted, path in self._lines() if noted == generation)

    def clear(self) -> None:
        """Forget the notes: the commit came, or the files are gone. Only under the lease."""
        self._path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[tuple[int, str]]:
        try:
            text = self._path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return
        # Of the last line without its end nothing was written yet.
        for line in text.split("\n")[:-1]:
            number, _, path = line.partition(" ")
            if number.isdecimal() and path:
                yield int(number), path


# -- What is said of a lake that cannot be read as it is: damaged files, unknown ones, other columns.

# An error message of more names is not read.
UNKNOWN_NAMED = 3


def unclear(unknown: list[str], *, has_manifest: bool) -> LakeUnclear:
    """Return the error that names lake files that the manifest never named."""
    shown = ", ".join(unknown[:UNKNOWN_NAMED]) + (", …" if len(unknown) > UNKNOWN_NAMED else "")
    why = "it may be an older one or that of another store" if has_manifest else "it is missing"
    return LakeUnclear(
        f"runs/manifest.json does not name {len(unknown)} files of the lake ({shown}): {why}. "
        "Nothing was changed.",
        "Restore the manifest that belongs to them (cortex restore FILE), or rebuild it: "
        "cortex rebuild --adopt-lake. To continue without them: cortex rebuild --set-aside",
    )


def damaged(file: LakeFile, why: str) -> FileDamaged:
    """Return the error that names a lake file and what was in it."""
    what = "vectors" if file.table == VECTORS.name else f"the {file.table} of project {file.partition}"
    return FileDamaged(
        f"the lake file {file.path} {why}. It holds {file.rows} rows: {what}.",
        "Copy the file from another copy of the store, or restore a backup (cortex restore FILE). "
        "To continue without it: cortex rebuild --set-aside, and then cortex backfill, which reads again the "
        "transcripts that are still there",
    )


def mismatch(table: Table, schema: pa.Schema) -> SchemaMismatch:
    """Return the error that names the columns of a file that `table` does not have."""
    missing = sorted(set(table.arrow.names) - set(schema.names))
    unexpected = sorted(set(schema.names) - set(table.arrow.names))
    return SchemaMismatch(
        f"table '{table.name}' has another layout: missing {missing}, unexpected {unexpected}.",
        "Install the version of Cortex that wrote it, or a newer one.",
    )
