"""What others read: briefs, the hooks' project map, and a DuckDB file with Parquet snapshots."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.storage.files import PART_SUFFIX, write_atomically, writing_to
from cortex.storage.lake import Lake
from cortex.storage.manifest import LakeFile
from cortex.transforms.schemas import EVENTS, JOURNAL, METRICS, TURNS, Table

# The oldest storage format that current DuckDB clients share, so that older ones open the file too.
DUCKDB_STORAGE_VERSION = "v1.0.0"


class Published:
    """The folder `<home>/published/`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.root = home / "published"
        self.database_path = self.root / "memory.duckdb"

    def brief(self, project_id: str) -> str:
        """Return the published brief of a project; empty when there is none."""
        try:
            return self._brief_path(project_id).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def publish_brief(self, project_id: str, text: str) -> bool:
        """Publish a brief; return whether it differs from the last one (else nothing is written)."""
        if self.brief(project_id) == text:
            return False
        path = self._brief_path(project_id)
        with writing_to(self._home):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text.encode())
        return True

    def publish_projects(self, by_path: dict[str, str]) -> None:
        """Publish directory → project id for the hooks, which run no git."""
        path = self.root / "projects.json"
        text = json.dumps(by_path, ensure_ascii=False, indent=1).encode()
        if path.is_file() and path.read_bytes() == text:
            return
        with writing_to(self._home):
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)

    def publish_database(
        self, lake: Lake, memories: pa.Table, edges: pa.Table, metrics: pa.Table | None = None
    ) -> None:
        """
        Write `memory.duckdb` with the views turns, events, memories, edges, metrics and journal.

        The views read the lake's live files and Parquet snapshots beside the file, so it stays small
        and any DuckDB client can open it read-only. Older readers keep the file they opened.
        """
        with writing_to(self._home):
            self.root.mkdir(parents=True, exist_ok=True)
            self._write_snapshot("memories", memories)
            self._write_snapshot("edges", edges)
            self._write_snapshot("metrics", METRICS.empty() if metrics is None else metrics)
            part = self.root / f".memory.duckdb.{os.getpid()}{PART_SUFFIX}"
            part.unlink(missing_ok=True)
            try:
                self._write_database(part, lake)
                part.replace(self.database_path)
            finally:
                part.unlink(missing_ok=True)

    def _write_snapshot(self, name: str, rows: pa.Table) -> None:
        path = self.root / f"{name}.parquet"
        part = self.root / f".{name}.parquet.{os.getpid()}{PART_SUFFIX}"
        try:
            pq.write_table(rows, part, compression="zstd")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _write_database(self, path: Path, lake: Lake) -> None:
        import duckdb

        with duckdb.connect(":memory:") as database:
            database.execute(
                f"attach {_quoted(str(path))} as made (storage_version {_quoted(DUCKDB_STORAGE_VERSION)})"
            )
            database.execute("use made")
            for name in ("memories", "edges", "metrics"):
                database.execute(
                    f"create view {name} as from read_parquet({_quoted(str(self.root / f'{name}.parquet'))})"
                )
            for table in (TURNS, EVENTS, JOURNAL):
                database.execute(f"create view {table.name} as {_view_of(table, lake)}")
            database.execute("use memory")
            database.execute("detach made")

    def _brief_path(self, project_id: str) -> Path:
        return self.root / project_id / "brief.md"


def _view_of(table: Table, lake: Lake) -> str:
    """Return the SELECT over the live files of a lake table; shadowed sessions and repeated keys left out."""
    files = lake.manifest.live(table.name)
    if not files:
        columns = ", ".join(f"null::{_sql_type(field)} as {field.name}" for field in table.arrow)
        return f"select {columns} where false"
    union = " union all ".join(_rows_of(file, files, lake) for file in files)
    key = ", ".join(table.key)
    order = ", ".join(["file", "line", "block"] if table is TURNS else list(table.key))
    return f"select * from ({union}) qualify row_number() over (partition by {key} order by {order}) = 1"


def _rows_of(file: LakeFile, files: list[LakeFile], lake: Lake) -> str:
    newer = [f for f in files if f.partition == file.partition and f.generation > file.generation]
    hidden = sorted({session for f in newer for session in f.sessions})
    source = f"from read_parquet({_quoted(str(lake.root / file.path))}, hive_partitioning = false)"
    if not hidden:
        return f"select * {source}"
    return f"select * {source} where session_id not in ({', '.join(map(_quoted, hidden))})"


def _sql_type(field: "pa.Field[Any]") -> str:
    kinds = {"string": "varchar", "double": "double", "int32": "integer", "int16": "smallint"}
    if pa.types.is_timestamp(field.type):
        return "timestamptz"
    if pa.types.is_list(field.type):
        return f"{kinds[str(field.type.value_type)]}[]"
    return kinds[str(field.type)]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
