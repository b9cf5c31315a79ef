"""Columns of published snapshots, kept by a process that looks at them again and again."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

# A file's inode, when it was written, and its size: a run replaces a snapshot as a whole.
FileState = tuple[int, int, int]

_reading = threading.Lock()
_kept: dict[Path, tuple[FileState, dict[str, Any]]] = {}


def read_columns(path: Path, columns: Sequence[str] = ()) -> "pa.Table":
    """
    Return columns of a Parquet file, all of them by default: what was read before of the same file is kept.

    As soon as the file is another one, nothing that was read of the former is given or kept. Raises OSError
    and ArrowException if it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _reading, path.open("rb") as source:
        state = _state_of(source.fileno())
        known, held = _kept.get(path, (state, {}))
        if known != state:
            held = {}
        with pq.ParquetFile(source) as file:
            names = list(columns) or file.schema_arrow.names
            missing = [name for name in names if name not in held]
            if missing:
                rows = file.read(missing)
                held |= {name: rows[name] for name in missing}
        _kept[path] = (state, held)
        return pa.table({name: held[name] for name in names})


def _state_of(descriptor: int) -> FileState:
    state = os.fstat(descriptor)
    return state.st_ino, state.st_mtime_ns, state.st_size
