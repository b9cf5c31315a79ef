"""What is written to one LanceDB dataset: the rows that changed, told by a hash of each."""

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cortex.storage.tables.tables import HAS_VECTOR, VECTOR, Filter
from cortex.transforms.schemas import values

if TYPE_CHECKING:
    import duckdb

# A reader that opened a version keeps it this long; a recall over 17 projects takes .6 s.
VERSIONS_KEPT = timedelta(seconds=10)

# A column of its own: whether a row changed.
ROW_HASH = "row_hash"


def condition(where: Filter | None) -> str | None:
    """
    Return a filter in LanceDB's dialect; None for all rows.

    >>> condition({"status": ["active"], "merged_into": [None]})
    "status in ('active') and (false or merged_into is null)"
    """
    if not where:
        return None
    parts = []
    for column, allowed in where.items():
        # Quotes doubled: an imported memory's id is whatever its file said.
        listed = ", ".join("'" + value.replace("'", "''") + "'" for value in allowed if value is not None)
        part = f"{column} in ({listed})" if listed else "false"
        parts.append(f"({part} or {column} is null)" if None in allowed else part)
    return " and ".join(parts)


def hashes_in(rows: pa.Table) -> list[int]:
    """Return the hash of each row, as `with_row_hash` appended them."""
    hashes: list[int] = rows[ROW_HASH].cast(pa.uint64()).to_numpy().tolist()
    return hashes


def stored_hashes(handle: Any | None) -> list[int]:
    """Return the hashes of all rows of a dataset, sorted; none if there is no dataset."""
    if handle is None:
        return []
    return sorted(hashes_in(handle.search().select([ROW_HASH]).limit(max(handle.count_rows(), 1)).to_arrow()))


def without_vectors(rows: pa.Table) -> pa.Table:
    """Return rows that say of a vector only whether there is one."""
    if VECTOR not in rows.schema.names:
        return rows
    import pyarrow.compute as pc

    return rows.drop_columns([VECTOR]).append_column(HAS_VECTOR, pc.is_valid(rows[VECTOR]))


def with_row_hash(rows: pa.Table) -> pa.Table:
    """Return `rows` with a hash over all other columns; of the vector only whether it is there."""
    return rows.append_column(pa.field(ROW_HASH, pa.uint64()), _row_hashes(without_vectors(rows)))


def _row_hashes(rows: pa.Table) -> "pa.ChunkedArray[Any]":
    # DuckDB hashes nested columns too: 90,000 memories in 2.5 s on a busy machine, where polars took 10.
    with _hasher().cursor() as database:
        database.register("given", rows)
        hashes: pa.Table = database.sql("select hash(given) as row_hash from given").to_arrow_table()
    return hashes["row_hash"]


@cache
def _hasher() -> "duckdb.DuckDBPyConnection":
    # Kept: a database of its own for each table took 15 ms, a cursor takes 1.
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


def has_columns(handle: Any, rows: pa.Table) -> bool:
    """Return whether a dataset has the columns of `rows`, of the same types."""
    schema = handle.schema
    return bool(schema.names == rows.schema.names and schema.types == rows.schema.types)


def write_changed(
    handle: Any, key: str, rows: pa.Table, where: Filter | None = None
) -> tuple[int, list[str]]:
    """
    Make `rows` all that meets `where` in a dataset, by default all of it.

    Returns how many rows were written or removed, and the keys of the removed ones.
    """
    before = _hashes_by_key(handle, key, where)
    names, hashes = values(rows, key), values(rows, ROW_HASH)
    changed: list[bool] = [before.get(name) != value for name, value in zip(names, hashes, strict=True)]
    gone = sorted(set(before) - set(names))
    if any(changed):
        merge = handle.merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows.filter(pa.array(changed)), on_bad_vectors="null")
    for start in range(0, len(gone), 1_000):  # a longer list makes one filter expression too deep
        handle.delete(condition({key: gone[start : start + 1_000]}))
    if any(changed) or gone:
        tidy(handle)
    return changed.count(True) + len(gone), gone


def _hashes_by_key(handle: Any, key: str, where: Filter | None) -> dict[str, int]:
    scan = handle.search().select([key, ROW_HASH])
    if where:
        scan = scan.where(condition(where))
    stored = scan.limit(max(handle.count_rows(), 1)).to_arrow()
    return dict(zip(values(stored, key), values(stored, ROW_HASH), strict=True))


def tidy(handle: Any) -> None:
    """Compact a dataset and remove the versions that no reader has open any more."""
    # Only the holder of the lease writes, so files no version names are a killed run's leftovers.
    handle.optimize(cleanup_older_than=VERSIONS_KEPT, delete_unverified=True)
