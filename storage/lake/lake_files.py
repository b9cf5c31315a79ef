"""One Parquet file of the lake, encrypted or not: written whole, read only as it was written."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from cortex.storage.ground.files import PART_SUFFIX, replacing
from cortex.storage.lake.encryption import ENCRYPTED, Vault
from cortex.storage.lake.manifest import is_lake_file

# Under this name a file says in its own footer what the manifest says of it.
LABEL = b"cortex_lake"

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
        return write_durably(root / path, lambda part: pq.write_table(rows, part, compression="zstd"))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    encrypted = vault.encrypted_bytes(sink.getvalue().to_pybytes(), place_of(path, label.table), key_id or "")
    return write_durably(root / path, lambda part: part.write_bytes(encrypted))


def write_durably(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make the file next to its place, then move it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, path.with_name(f".{path.name}{PART_SUFFIX}")) as part:
        write(part)


def place_of(path: str, table: str) -> str:
    """Return what a sealed lake file is bound to: anywhere else, or as another table, it is refused."""
    return f"lake/{path} {table}"
