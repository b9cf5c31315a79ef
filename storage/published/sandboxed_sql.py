"""The store as tables of a sealed DuckDB: what a person's SQL may ask, and nothing else on this machine.

DuckDB is given rows, not files. One that may read the lake's folder may write there as well, and SQL that
begins with `select` can write: `with x as (copy …) …` is one statement, of type SELECT.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from cortex.storage.lake.lake import Lake, each_key_once
from cortex.storage.lake.lake_files import UNREADABLE
from cortex.storage.lake.manifest import LakeFile
from cortex.storage.published.published import (
    FROM_THE_LAKE,
    LAKE_VIEWS,
    RANKED_BY,
    SNAPSHOTS,
    Published,
    create_rankings,
    view_of,
)
from cortex.transforms.database import ISOLATED, open_isolated
from cortex.transforms.errors import NotFound, TablesDamaged, UsageError
from cortex.transforms.schemas import POLICY_TABLES, TURNS, Table, values

# A person's query may use every core. What does not fit into memory ends with an error: DuckDB would put
# rows into a folder `.tmp` where the command is called, and leave it there when killed.
ASKED = {**{name: value for name, value in ISOLATED.items() if name != "threads"}, "temp_directory": ""}

# Column of a lake table's files: which one a row is from. A generation hides sessions in older files.
FILE_NUMBER = "file_number"

# Kinds of statement that only read; DuckDB takes `pivot` apart into several.
READING = {"SELECT", "MULTI"}
# What may stand before such a statement.
_EXPLAIN = re.compile(r"^\s*explain\s+(?:analyze\b|\([^)]*\))?", re.IGNORECASE)
_PRAGMA = re.compile(r"^\s*pragma\s+(?:table_info|show_tables|database_list)\b[^;]*;?\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)


def check_reads(query: str) -> None:
    """Raise UsageError where `query` is empty or has a statement that does more than read."""
    statements = duckdb.extract_statements(query)
    if not statements:
        raise UsageError("The query is empty.", "Try: cortex sql 'select count(*) from memories'")
    for statement in statements:
        kind = statement.type.name
        if kind not in READING and not _only_shows(kind, _COMMENT.sub(" ", statement.query)):
            raise UsageError(
                f"'{kind.lower()}' does more than read, and the store is read-only here.",
                "Begin with select; change memories with remember and forget.",
            )


def _only_shows(kind: str, text: str) -> bool:
    if kind == "PRAGMA":
        return _PRAGMA.match(text) is not None
    if kind != "EXPLAIN":
        return False
    inner = duckdb.extract_statements(_EXPLAIN.sub("", text, count=1))
    return all(statement.type.name in READING for statement in inner)


def database_of(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return a sealed database with these tables."""
    database = open_isolated(ASKED)
    for name, rows in tables.items():
        database.register(name, rows)
    for name, select in LAKE_VIEWS.items():
        database.execute(f"create view {name} as {select}")
    create_rankings(database)
    return database


def database_of_store(
    published: Published,
    lake: Lake,
    query: str,
    merged: Mapping[str, str],
    scopes: frozenset[str] | None = None,
    memory_mib: int | None = None,
    hidden: frozenset[str] = frozenset(),
) -> duckdb.DuckDBPyConnection:
    """
    Return a sealed database with what `memory.duckdb` shows, of a sealed lake also what that cannot.

    With `scopes` (project ids and `global`) it holds the rows of these alone: no others are given to it.
    `memory_mib` is the most memory that it may take; a table of the lake that is `hidden` is empty. Of a
    sealed lake only the tables that `query` names are read, into memory. Raises NotFound if nothing is
    published or a file is gone, KeyUnavailable and FileDamaged.
    """
    if not published.database_path.is_file():
        raise NotFound("Nothing is published yet.", "Publish it: cortex backfill, or cortex run")
    limited = {} if memory_mib is None else {"memory_limit": f"{memory_mib}MiB"}
    database = open_isolated({**ASKED, **limited})
    try:
        for snapshot in SNAPSHOTS:
            path = published.root / f"{snapshot.name}.parquet"
            if snapshot in RANKED_BY and not path.is_file():  # an earlier version published less
                continue
            rows = _snapshot(path)
            is_whole = scopes is None or snapshot in POLICY_TABLES
            database.register(snapshot.name, rows if is_whole else rows.filter(_is_of(scopes or frozenset())))
        for table in FROM_THE_LAKE:
            if table.name in hidden:
                database.register(table.name, table.empty())
                continue
            is_read = _names(query, table.name) or (
                table is TURNS and any(_names(query, v) for v in LAKE_VIEWS)
            )
            if not lake.key_id:
                _create_view(database, table, lake, merged, scopes, is_read=is_read)
            elif is_read:
                opened = _decrypted(table, lake, merged)
                database.register(table.name, opened if scopes is None else opened.filter(_is_of(scopes)))
        for name, select in LAKE_VIEWS.items():
            if not lake.key_id or _names(query, name):
                database.execute(f"create view {name} as {select}")
        with suppress(duckdb.CatalogException, duckdb.BinderException):  # by an earlier version
            create_rankings(database)
    except FileNotFoundError as error:
        raise NotFound(
            f"A file of the store is gone: {error}.",
            "A run may have just replaced it: run the same command again. If it persists: cortex doctor",
        ) from error
    return database


def _is_of(scopes: frozenset[str]) -> pc.Expression:
    return pc.field("project_id").isin(pa.array(sorted(scopes), pa.string()))


def _names(query: str, table: str) -> bool:
    return re.search(rf"\b{table}\b", query, re.IGNORECASE) is not None


def _snapshot(path: Path) -> ds.Dataset:
    try:
        return ds.dataset(path, format="parquet")
    except FileNotFoundError:
        raise
    except UNREADABLE as error:
        raise TablesDamaged(f"The published file {path} cannot be read.") from error


def _create_view(
    database: duckdb.DuckDBPyConnection,
    table: Table,
    lake: Lake,
    merged: Mapping[str, str],
    scopes: frozenset[str] | None,
    *,
    is_read: bool,
) -> None:
    """
    Create the view of a lake table over its live files: one dataset that knows them by number.

    Of a table that a query reads, each file has to be as it was written: raises FileDamaged.
    """
    live = [
        file
        for file in lake.manifest.live(table.name)
        if scopes is None or merged.get(file.partition, file.partition) in scopes
    ]
    for file in live if is_read else ():
        lake.check_content(file)
    files = {file: number for number, file in enumerate(live)}
    if files:
        rows = ds.FileSystemDataset.from_paths(
            [str(lake.root / file.path) for file in files],
            schema=table.arrow.append(pa.field(FILE_NUMBER, pa.int32())),
            format=ds.ParquetFileFormat(),
            filesystem=LocalFileSystem(),
            partitions=[ds.field(FILE_NUMBER) == number for number in files.values()],
        )
        database.register(f"{table.name}_files", rows)

    def source(file: LakeFile) -> str:
        rows_of = f"from {table.name}_files where {FILE_NUMBER} = {files[file]}"
        return f"from (select * exclude ({FILE_NUMBER}) {rows_of})"

    database.execute(f"create view {table.name} as {view_of(table, lake, merged, source, live)}")


def _decrypted(table: Table, lake: Lake, merged: Mapping[str, str]) -> pa.Table:
    rows = each_key_once(table, lake.read(table))
    names = [merged.get(name, name) for name in values(rows, "project_id")]
    position = rows.schema.get_field_index("project_id")
    field = rows.schema.field(position)
    return rows.set_column(position, field, pa.array(names, field.type))
