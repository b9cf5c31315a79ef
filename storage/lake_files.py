"""One Parquet file of the lake, in clear or sealed: written whole, read only as it was written."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.storage.encryption import SEALED, Vault
from cortex.storage.files import PART_SUFFIX, replacing


def readable(root: Path, path: str, table: str, vault: Vault) -> Path | pa.BufferReader:
    """
    Return what Arrow reads for the lake file `path` of `table`: the file, or its content without the seal.

    A sealed file is checked before any of it is used. Raises FileNotFoundError, FileDamaged, KeyUnavailable.
    """
    if not path.endswith(SEALED):
        return root / path
    return pa.BufferReader(vault.unseal((root / path).read_bytes(), place_of(path, table)))


def write_rows(root: Path, path: str, table: str, rows: pa.Table, vault: Vault, key_id: str | None) -> None:
    """Write `rows` to the lake file `path`, durable; where its name says sealed, nothing in clear on disk."""
    if not path.endswith(SEALED):
        return write_durably(root / path, lambda part: pq.write_table(rows, part, compression="zstd"))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    sealed = vault.seal(sink.getvalue().to_pybytes(), place_of(path, table), key_id or "")
    return write_durably(root / path, lambda part: part.write_bytes(sealed))


def write_durably(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make the file beside its place, then put it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, path.with_name(f".{path.name}{PART_SUFFIX}")) as part:
        write(part)


def place_of(path: str, table: str) -> str:
    """Return what a sealed lake file is bound to: anywhere else, or as another table, it is refused."""
    return f"lake/{path} {table}"
