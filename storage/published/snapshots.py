"""The snapshots of a store's tables as Parquet, written and read piece by piece."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from cortex.storage.ground.files import PART_SUFFIX
from cortex.transforms.schemas import Table

# In the metadata of a snapshot's Parquet file: what the rows of each scope were made of, as JSON.
FINGERPRINTS = b"cortex.fingerprints"
# Rows written together: about 30 MB of memories, so that many small projects share a group.
ROWS_AT_ONCE = 50_000
_UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError)


class SnapshotFile:
    """A snapshot as it was when it was opened; nothing if it is missing or cannot be read."""

    def __init__(self, path: Path, table: Table) -> None:
        """Read what the scopes were made of (`fingerprints`, by scope) and where their rows stand."""
        import pyarrow.parquet as pq

        self._table = table
        self.fingerprints: dict[str, str] = {}
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        try:
            self._file = pq.ParquetFile(path)
            known = json.loads((self._file.schema_arrow.metadata or {}).get(FINGERPRINTS, b"{}"))
            for group in range(self._file.num_row_groups if known else 0):
                for scope, begin, count in _runs_in(self._file.read_row_group(group, columns=["project_id"])):
                    self._places.setdefault(scope, []).append((group, begin, count))
            self.fingerprints = known
        except _UNREADABLE:
            self._places = {}
        self._group = lru_cache(maxsize=2)(self._read_group)

    def rows_of(self, scope: str) -> pa.Table | None:
        """Return the rows of a scope; None if they cannot be read."""
        try:
            pieces = [self._group(at).slice(begin, count) for at, begin, count in self._places.get(scope, ())]
        except _UNREADABLE:
            return None
        return pa.concat_tables([self._table.empty(), *pieces])

    def _read_group(self, number: int) -> pa.Table:
        return self._file.read_row_group(number).replace_schema_metadata().cast(self._table.arrow)


def _runs_in(rows: pa.Table) -> Iterator[tuple[str, int, int]]:
    """Yield each run of rows of one project: its id, where it begins, how many rows it has."""
    codes = rows["project_id"].combine_chunks().dictionary_encode()
    numbers = codes.indices.to_numpy()
    starts = [] if not len(numbers) else [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
    for begin, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield str(codes.dictionary[int(numbers[begin])]), begin, end - begin


def write_snapshot(
    path: Path, table: Table, pieces: Iterable[pa.Table], fingerprints: Mapping[str, str]
) -> None:
    """Write a snapshot of rows of the columns of `table`, in the place of the one that is at `path`."""
    import pyarrow.parquet as pq

    metadata = {FINGERPRINTS: json.dumps(fingerprints, sort_keys=True)} if fingerprints else {}
    schema = table.arrow.with_metadata({**(table.arrow.metadata or {}), **metadata})
    part = path.with_name(f".{path.name}.{os.getpid()}{PART_SUFFIX}")
    try:
        with pq.ParquetWriter(part, schema, compression="zstd") as writer:
            for rows in _grouped(table, pieces):
                writer.write_table(rows.cast(schema))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _grouped(table: Table, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of all pieces in larger ones; one without rows if there are none."""
    gathered, count, is_any = [table.empty()], 0, False
    for rows in pieces:
        gathered.append(rows)
        count += rows.num_rows
        if count >= ROWS_AT_ONCE:
            yield pa.concat_tables(gathered)
            gathered, count, is_any = [table.empty()], 0, True
    if count or not is_any:
        yield pa.concat_tables(gathered)
