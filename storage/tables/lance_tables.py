"""
The tables as LanceDB datasets, disposable projections of the lake; nothing else reads or writes them.

That is a generated HTTP client of several hundred models, for catalogues elsewhere, and a check of overridden
methods that reads bytecode: together 1.3 of the 1.7 s of processor time that importing LanceDB takes (0.40).
"""

import os
import shutil
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cortex.storage.filesystem.files import refusal_of, writing_to
from cortex.storage.tables.search_file import SEARCH_FILE, has_dataset
from cortex.storage.tables.search_index import IndexedRows, SearchIndex
from cortex.storage.tables.tables import HAS_VECTOR, PROJECTED, VECTOR, Filter
from cortex.stubbed_imports import stubbing
from cortex.transforms.errors import CortexError, TablesDamaged
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import GLOBAL_SCOPE, Table, values

if TYPE_CHECKING:
    import duckdb


# -- Imports LanceDB without what datasets in a folder never use.

# For LanceDB's namespaces; and marks of methods, which Python 3.12 has itself.
STUBBED = ("lance_namespace", "lance_namespace_urllib3_client", "overrides")


@cache
def lancedb() -> Any:
    """Return the module `lancedb`, imported at the first call."""
    with stubbing(*STUBBED):
        import lancedb
    return lancedb


# -- What is written to one LanceDB dataset: the rows that changed, told by a hash of each.

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
    """Return the hash of each row, as `as_stored` appended them."""
    hashes: list[int] = rows[ROW_HASH].cast(pa.uint64()).to_numpy().tolist()
    return hashes


def stored_hashes(handle: Any | None) -> "np.ndarray[Any, Any]":
    """Return the hashes of all rows of a dataset, sorted; none if there is no dataset."""
    if handle is None:
        return np.empty(0, np.uint64)
    rows = handle.search().select([ROW_HASH]).limit(max(handle.count_rows(), 1)).to_arrow()
    return np.sort(rows[ROW_HASH].to_numpy())


def as_stored(rows: pa.Table) -> pa.Table:
    """
    Return rows as a dataset has them: whether they have a vector, its numbers in half precision, and a hash.

    The hash is over all other columns; of the vector only whether it is there.
    """
    vectors = rows[VECTOR] if VECTOR in rows.schema.names else None
    if vectors is not None:
        import pyarrow.compute as pc

        rows = rows.drop_columns([VECTOR]).append_column(HAS_VECTOR, pc.is_valid(vectors))
    hashed = rows.append_column(pa.field(ROW_HASH, pa.uint64()), _row_hashes(rows))
    if vectors is None:
        return hashed
    return hashed.append_column(VECTOR, vectors.cast(pa.list_(pa.float16(), vectors.type.list_size)))


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


def in_own_buffers(rows: pa.Table) -> pa.Table:
    """
    Return `rows` in buffers that hold their values and nothing else.

    LanceDB writes a string buffer whole, also what lies in it below a null; and a row that it deleted while
    it was read, or that was filtered out, may have left its words there.
    """
    return rows.take(pa.array(range(rows.num_rows), pa.int64())).combine_chunks()


def write_changed(
    handle: Any, folder: Path, key: str, rows: pa.Table, where: Filter | None = None
) -> tuple[int, list[str]]:
    """
    Make `rows` all that meets `where` in the dataset in `folder`, by default all of it.

    Returns how many rows were written or removed, and the keys of the removed ones.
    """
    before = _hashes_by_key(handle, key, where)
    names, hashes = values(rows, key), values(rows, ROW_HASH)
    changed: list[bool] = [before.get(name) != value for name, value in zip(names, hashes, strict=True)]
    gone = sorted(set(before) - set(names))
    if any(changed):
        merge = handle.merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
        merge.execute(in_own_buffers(rows.filter(pa.array(changed))), on_bad_vectors="null")
    for start in range(0, len(gone), 1_000):  # a longer list makes one filter expression too deep
        handle.delete(condition({key: gone[start : start + 1_000]}))
    if gone or (any(changed) and len(_data_files(folder)) > FILES_KEPT):
        tidy(handle)
    return changed.count(True) + len(gone), gone


def _hashes_by_key(handle: Any, key: str, where: Filter | None) -> dict[str, int]:
    scan = handle.search().select([key, ROW_HASH])
    if where:
        scan = scan.where(condition(where))
    stored = scan.limit(max(handle.count_rows(), 1)).to_arrow()
    return dict(zip(values(stored, key), values(stored, ROW_HASH), strict=True))


# Compacting writes all rows again, .15 s of processor time for 10,000 memories. Each write that changes rows
# adds a file, but a fragment only where other rows of an older one stay. What is to leave no byte is purged.
FILES_KEPT = 8


def _data_files(folder: Path) -> list[Path]:
    """Return the files of rows of all versions of a dataset; others put their own there, also folders."""
    return list((folder / "data").glob("*.lance"))


def tidy(handle: Any) -> None:
    """Compact a dataset and remove the versions that no reader has open any more."""
    # Only the holder of the lease writes, so files no version names are a killed run's leftovers.
    handle.optimize(cleanup_older_than=VERSIONS_KEPT, delete_unverified=True)


# Where a rebuild makes tables before it puts them in place; a killed one leaves it behind.
REBUILDING = "rebuilding"


@contextmanager
def reading(scope: str, name: str) -> Iterator[None]:
    """Turn what LanceDB raises over a damaged dataset into TablesDamaged."""
    try:
        yield
    except CortexError:
        raise
    except Exception as error:  # LanceDB's errors share no base class
        raise TablesDamaged(f"The table '{name}' of {scope} cannot be read.", scope) from error


# Stages read the tables of a scope one after another, and each reading takes 10 ms however few the rows are.
# So many datasets stay open, with their rows where these are at most so many bytes; of the scope that was
# opened last, and of the global one, rows of more bytes stay too.
DATASETS_KEPT = 64
ROWS_KEPT_BYTES = 512 * 1024
ROWS_OF_SCOPE_KEPT_BYTES = 32 * 1024 * 1024


class LanceDataset:
    """One LanceDB dataset, opened for reading; a missing one reads as empty."""

    def __init__(self, table: Table, handle: Any | None, scope: str = "") -> None:
        self._table = table
        self._handle = handle
        self._scope = scope
        # Asked for once: each time is a message to LanceDB's own thread and back.
        self._names: list[str] = handle.schema.names if handle is not None else []
        self._rows: pa.Table | None = None

    @property
    def version(self) -> int:
        """Return the dataset's version; it rises only when rows change. 0: there is none."""
        return int(self._handle.version) if self._handle is not None else 0

    def count(self, where: Filter | None = None) -> int:
        """Return the number of rows that meet `where`."""
        with reading(self._scope, self._table.name):
            return int(self._handle.count_rows(condition(where))) if self._handle is not None else 0

    def read(self, columns: Sequence[str] = (), where: Filter | None = None) -> pa.Table:
        """
        Return the rows that meet `where`, by key: those of `columns` that there are, or the schema's.

        A column of the schema that an earlier version did not write is null.
        """
        schema = self._table.arrow
        wanted = list(columns or schema.names)
        if self._handle is None:
            return self._table.empty().select([name for name in wanted if name in schema.names])
        if self._rows is not None and not where and set(wanted) <= {*schema.names}:
            return self._rows.select(wanted)
        wanted = [name for name in wanted if name in self._names or name in schema.names]
        there, key = [name for name in wanted if name in self._names], list(self._table.key)
        scan = self._handle.search().select(list(dict.fromkeys([*key, *there])))
        if where:
            scan = scan.where(condition(where))
        with reading(self._scope, self._table.name):
            rows: pa.Table = scan.limit(max(self.count(), 1)).to_arrow()
        for name in set(wanted) - set(there):
            rows = rows.append_column(schema.field(name), pa.nulls(rows.num_rows, schema.field(name).type))
        rows = rows.sort_by([(name, "ascending") for name in key]).select(wanted)
        if wanted == schema.names and not where and rows.nbytes <= ROWS_OF_SCOPE_KEPT_BYTES:
            self._rows = rows
        return rows

    def forget_many_rows(self) -> None:
        """Keep the rows that were read last only if they are few."""
        if self._rows is not None and self._rows.nbytes > ROWS_KEPT_BYTES:
            self._rows = None


class LanceTables:
    """The datasets memories, edges and passages of every scope, below `<home>/tables/<scope>/`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "tables"
        self.index: SearchIndex | None = SearchIndex(self.root / SEARCH_FILE)
        self._connections: dict[str, Any] = {}
        self._opened: dict[tuple[str, str], tuple[object, LanceDataset]] = {}

    def scopes(self) -> list[str]:
        """Return the scopes that have tables, sorted; other folders are not ours."""
        folders = {path.parent.name for name in PROJECTED for path in self.root.glob(f"*/{name}.lance")}
        return sorted(folders)

    def size(self) -> int:
        """Return what all datasets take on disk, in bytes."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    def open(self, scope: str, name: str) -> LanceDataset:
        """Return a dataset for reading."""
        table = PROJECTED[name]
        if not self.exists(scope, name):
            return LanceDataset(table, None)
        for (other, _), (_, dataset) in self._opened.items():
            if other != scope != GLOBAL_SCOPE:
                dataset.forget_many_rows()
        files = _files_below(self._folder(scope, name))
        stamp, opened = self._opened.get((scope, name), (None, None))
        if opened is None or stamp != files:
            with reading(scope, name):
                opened = LanceDataset(table, self._handle(scope, name), scope)
            self._opened.pop((scope, name), None)
            if len(self._opened) >= DATASETS_KEPT:
                del self._opened[next(iter(self._opened))]
            self._opened[scope, name] = files, opened
        return opened

    def reading_index(self, scopes: Sequence[str]) -> AbstractContextManager[sqlite3.Connection | None]:
        """Yield the search index to read by; None if there is none. Raises TablesDamaged."""
        return (self.index or SearchIndex(None)).reading(scopes)

    def open_index(self, scopes: Sequence[str], name: str) -> IndexedRows:
        """Return what the search index has of the table `name` of some scopes."""
        return (self.index or SearchIndex(None)).rows(scopes, name)

    def replace(self, scope: str, name: str, rows: pa.Table) -> int:
        """
        Make `rows` the dataset's content and return how many rows were written or removed.

        `rows` has the schema's columns, for searched tables also `index_text` and (where there is a model)
        `vector`. Rows equal to the stored ones are not written; without any difference there is no new
        version. Compacts, prunes old versions and brings the search index up to date in the same call. A
        dataset that cannot be read is made from nothing.
        """
        stored = as_stored(rows)
        with writing_to(self.home):
            try:
                changed = self._replace(scope, name, stored)
            except Exception as error:  # LanceDB's errors share no base class
                if refusal_of(error, self.home) is not None:
                    raise
                self._drop_dataset(scope, name)
                changed = self._replace(scope, name, stored)
            if self.index is not None:  # second: a run killed here makes the table again
                self.index.replace(scope, name, rows, hashes_in(stored))
            return changed

    def _replace(self, scope: str, name: str, rows: pa.Table) -> int:
        table = PROJECTED[name]
        if not self.exists(scope, name):
            return self._create(scope, name, rows)
        handle = self._handle(scope, name)
        if not has_columns(handle, rows):
            return self._create(scope, name, rows)
        return write_changed(handle, self._folder(scope, name), table.key[0], rows)[0]

    def update(self, scope: str, name: str, rows: pa.Table, where: Filter) -> int | None:
        """
        Make `rows` all that meets `where`, also in the place of rows of their keys; leave the other rows.

        Returns how many rows were written or removed; None if the table is to be replaced as a whole: it
        has other columns or cannot be read, or the search index holds other rows.
        """
        stored, (key,) = as_stored(rows), PROJECTED[name].key
        with writing_to(self.home):
            try:
                if not self.exists(scope, name):
                    return None
                handle = self._handle(scope, name)
                if not has_columns(handle, stored):
                    return None
                changed, gone = write_changed(handle, self._folder(scope, name), key, stored, where)
            except Exception as error:  # LanceDB's errors share no base class
                if refusal_of(error, self.home) is not None:
                    raise
                return None
            hashes, count = hashes_in(stored), int(handle.count_rows())
            is_same = self.index is None or self.index.update(scope, name, rows, hashes, gone, count)
            return changed if is_same else None

    def content_of(self, scope: str, name: str) -> str | None:
        """
        Return a value of the rows that a dataset has, whenever and wherever they were written.

        None if they cannot be read, or where the search index holds other rows. Of a row its hash is read.
        """
        try:
            handle = self._handle(scope, name) if self.exists(scope, name) else None
            hashes = stored_hashes(handle)
            if self.index is not None and not np.array_equal(self.index.hashes(scope, name), hashes):
                return None
        except Exception as error:  # LanceDB's errors share no base class
            if refusal_of(error, self.home) is not None:
                raise
            return None
        return content_id(",".join(map(str, hashes.tolist())))

    def append(self, scope: str, name: str, rows: pa.Table) -> None:
        """
        Add rows that are not in the dataset yet, as `replace` takes them; `finish` makes it searchable.

        For what is too large to be handed over at once.
        """
        stored = as_stored(rows)
        with writing_to(self.home):
            if self.exists(scope, name):
                self._handle(scope, name).add(in_own_buffers(stored), on_bad_vectors="null")
            else:
                (self.root / scope).mkdir(parents=True, exist_ok=True)
                self._connected(scope).create_table(name, in_own_buffers(stored), on_bad_vectors="null")
            if self.index is not None:
                self.index.append(scope, name, rows, hashes_in(stored))

    def finish(self, scope: str, name: str) -> None:
        """Compact what was appended."""
        with writing_to(self.home):
            tidy(self._handle(scope, name))

    def replace_whole(self, scope: str, name: str, rows: pa.Table) -> None:
        """Make `rows` the content of a table of which nothing is kept, as `replace` takes them."""
        with writing_to(self.home):
            self._drop_dataset(scope, name)
            self.replace(scope, name, rows)
            if self.index is not None:
                self.index.replace(scope, name, rows, hashes_in(as_stored(rows)), keeps=False)

    def settle_search(self, settings: str, ranks: Sequence[tuple[str, int]]) -> bool:
        """Make these what the prompt hook searches by; return whether they were not already."""
        with writing_to(self.home):
            return self.index is not None and self.index.set_reader_settings(settings, ranks)

    def mark_search(self, scope: str, marks: Mapping[str, str]) -> bool:
        """Make `marks` what the prompt hook says behind memories; return whether they were not already."""
        with writing_to(self.home):
            return self.index is not None and self.index.mark(scope, marks)

    def purge(self, scope: str) -> None:
        """
        Rewrite a scope's datasets and remove every older version, with the bytes of rows that are gone.

        Deleted rows otherwise stay in their file until it is compacted. The search index is rewritten.
        """
        with writing_to(self.home):
            if self.index is not None:
                self.index.purge()
            for name in PROJECTED:
                if not self.exists(scope, name):
                    continue
                handle = self._handle(scope, name)
                if not handle.count_rows():
                    shutil.rmtree(self._folder(scope, name))
                    continue
                old = _data_files(self._folder(scope, name))
                self._create(scope, name, handle.to_arrow())
                with warnings.catch_warnings():  # a reader of an older version may fail: that is meant
                    warnings.simplefilter("ignore", UserWarning)
                    written = self._handle(scope, name)
                    written.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
                for path in old:  # LanceDB is silent about a file that it could not remove
                    path.unlink(missing_ok=True)

    def drop(self, scope: str) -> None:
        """Remove a scope's tables."""
        with writing_to(self.home):
            if self.index is not None:
                self.index.drop(scope)
            for name in PROJECTED:
                self._drop_dataset(scope, name)
            with suppress(OSError):  # somebody put something else there
                (self.root / scope).rmdir()

    def _drop_dataset(self, scope: str, name: str) -> None:
        path = self._folder(scope, name)
        self._connections.pop(scope, None)  # it may hold what it has read of it
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def _create(self, scope: str, name: str, rows: pa.Table) -> int:
        if not rows.num_rows and not self.exists(scope, name):
            return 0
        (self.root / scope).mkdir(parents=True, exist_ok=True)
        if self._folder(scope, name).is_file():  # it takes the place of a folder of ours
            self._drop_dataset(scope, name)
        handle = self._connected(scope).create_table(
            name, in_own_buffers(rows), mode="overwrite", on_bad_vectors="null"
        )
        tidy(handle)
        return int(rows.num_rows)

    def _folder(self, scope: str, name: str) -> Path:
        return self.root / scope / f"{name}.lance"

    def _handle(self, scope: str, name: str) -> Any:
        return self._connected(scope).open_table(name)

    def _connected(self, scope: str) -> Any:
        if scope not in self._connections:
            self._connections[scope] = _connect(self.root / scope)
        return self._connections[scope]

    def exists(self, scope: str, name: str) -> bool:
        """Return whether there is a dataset; one without rows may never have been written."""
        return has_dataset(self.root, scope, name)


def _files_below(folder: Path | str) -> list[tuple[str, int, int]]:
    """Return what changes with anything that is written or damaged below a folder: names, times, sizes."""
    files = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:  # a writer removes old versions
        for entry in entries:
            if entry.is_dir():
                files += _files_below(entry.path)
            else:
                status = entry.stat()
                files.append((entry.path, status.st_mtime_ns, status.st_size))
    return sorted(files)


class RebuiltTables(LanceTables):
    """New tables that will replace the live ones."""

    def __init__(self, live: LanceTables) -> None:
        """Name their place; a killed rebuild may have left something there."""
        super().__init__(live.home / REBUILDING)
        self.index = None  # of what is put in place the live one is made
        self._live = live

    def put_in_place(self, scope: str) -> int:
        """Put a scope's tables in the place of the live ones and return their rows."""
        count = 0
        for name, table in PROJECTED.items():
            if self.exists(scope, name):
                rows = self._handle(scope, name).to_arrow()
                rows = rows.select([each for each in rows.schema.names if each not in (ROW_HASH, HAS_VECTOR)])
            else:
                rows = table.empty()
            self._live.replace_whole(scope, name, rows)
            count += rows.num_rows
        return count

    def remove(self) -> None:
        """Remove what was not put in place, and what was replaced."""
        with writing_to(self._live.home):
            shutil.rmtree(self.home, ignore_errors=True)


class LanceTablesInMemory(LanceTables):
    """Tables of one process that are nowhere on disk, and searched like others or not."""

    def __init__(self, *, is_searched: bool = True) -> None:
        """Make empty tables."""
        super().__init__(Path())
        self.index = SearchIndex(None) if is_searched else None
        self._handles: dict[tuple[str, str], Any] = {}

    def scopes(self) -> list[str]:
        """Return the scopes that have tables, sorted."""
        return sorted({scope for scope, _ in self._handles})

    def exists(self, scope: str, name: str) -> bool:
        """Return whether there is a dataset."""
        return (scope, name) in self._handles

    def open(self, scope: str, name: str) -> LanceDataset:
        """Return a dataset for reading."""
        return LanceDataset(PROJECTED[name], self._handles.get((scope, name)))

    def replace(self, scope: str, name: str, rows: pa.Table) -> int:
        """Make `rows` the dataset's content and return how many."""
        if rows.num_rows:
            database = _connect("memory://")
            stored = as_stored(rows)
            self._handles[scope, name] = database.create_table(name, stored, on_bad_vectors="null")
            if self.index is not None:
                self.index.replace(scope, name, rows, hashes_in(stored))
        return int(rows.num_rows)

    def update(self, scope: str, name: str, rows: pa.Table, where: Filter) -> int | None:
        """Refuse: tables in memory are written as a whole."""
        return None

    def content_of(self, scope: str, name: str) -> str | None:
        """Return nothing: tables in memory are written as a whole."""
        return None


def _connect(folder: Path | str) -> Any:
    # It warns on stderr by default, also that a new dataset is new; a stray line there spoils a pipe.
    # LANCE_LOG, which its documentation names, has no effect in 0.40 (tried).
    os.environ.setdefault("LANCEDB_LOG", "error")
    return lancedb().connect(str(folder))
