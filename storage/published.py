"""What others read: briefs, the hooks' project map, and a DuckDB file with Parquet snapshots."""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.hooks import brief, health, prompt
from cortex.storage.files import PART_SUFFIX, write_atomically, writing_to
from cortex.storage.hook_index import fingerprint_in, write_hook_index
from cortex.storage.lake import Lake, each_key_once
from cortex.storage.manifest import LakeFile
from cortex.transforms.decisions_archive import ARCHIVE_NAME
from cortex.transforms.hook_index import Note
from cortex.transforms.schemas import EVENTS, JOURNAL, METRICS, TURNS, Table, values

# The oldest storage format that current DuckDB clients share, so that older ones open the file too.
DUCKDB_STORAGE_VERSION = "v1.0.0"

# What the views of `memory.duckdb` read from the lake itself.
FROM_THE_LAKE = (TURNS, EVENTS, JOURNAL)


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

    def archive(self, project_id: str) -> str:
        """Return a project's published archive of older decisions; empty when there is none."""
        try:
            return (self.root / project_id / ARCHIVE_NAME).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def publish_archive(self, project_id: str, text: str) -> bool:
        """Publish the archive, remove it where it is empty; return whether anything changed."""
        if self.archive(project_id) == text:
            return False
        path = self.root / project_id / ARCHIVE_NAME
        with writing_to(self._home):
            if text:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, text.encode())
            else:
                path.unlink(missing_ok=True)
        return True

    def publish_hook_index(
        self,
        project_id: str,
        notes: Sequence[Note],
        settings: Mapping[str, float | str],
        stop_words: Sequence[str],
    ) -> bool:
        """Publish what a prompt may bring up, remove it where it is nothing; return whether it changed."""
        with writing_to(self._home):
            return write_hook_index(self.root / project_id / prompt.INDEX, notes, settings, stop_words)

    def hook_index_made_from(self, project_id: str) -> str:
        """Return the fingerprint of what a project's hook index was made from; empty when there is none."""
        return fingerprint_in(self.root / project_id / prompt.INDEX) or ""

    def projects(self) -> list[str]:
        """Return the projects that something is published of, sorted."""
        found = self.root.iterdir() if self.root.is_dir() else ()
        return sorted(path.name for path in found if path.is_dir())

    def drop(self, project_id: str) -> None:
        """Remove all that is published of a project."""
        with writing_to(self._home):
            shutil.rmtree(self.root / project_id, ignore_errors=True)

    def publish_projects(self, by_path: dict[str, str]) -> None:
        """Publish directory → project id for the hooks, which run no git."""
        self._publish_map(self.root / "projects.json", by_path)

    def publish_counts(self, by_scope: Mapping[str, int]) -> None:
        """Publish how many memories are active, by project id and `global`, for hooks and status line."""
        self._publish_map(self._home / health.COUNTS, by_scope)

    def publish_surfaces(self, by_folder: Mapping[str, str]) -> None:
        """Publish folder → file that the brief stands in, so that the hooks do not say it twice."""
        if by_folder or (self._home / brief.SURFACES).is_file():
            self._publish_map(self._home / brief.SURFACES, by_folder)

    def _publish_map(self, path: Path, told: Mapping[str, object]) -> None:
        text = json.dumps(told, ensure_ascii=False, indent=1).encode()
        if path.is_file() and path.read_bytes() == text:
            return
        with writing_to(self._home):
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)

    def publish_database(
        self,
        lake: Lake,
        memories: pa.Table,
        edges: pa.Table,
        metrics: pa.Table | None = None,
        merged: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """
        Write `memory.duckdb` with the views turns, events, memories, edges, metrics and journal.

        The views read the lake's live files and Parquet snapshots beside the file, so it stays small
        and any DuckDB client can open it read-only. Older readers keep the file they opened. Of a sealed
        lake the views turns, events and journal are left out: `lend_sealed`. `merged` gives the project that
        another was merged into: all views know it under that id.
        """
        with writing_to(self._home):
            self.root.mkdir(parents=True, exist_ok=True)
            self._write_snapshot("memories", memories)
            self._write_snapshot("edges", edges)
            self._write_snapshot("metrics", METRICS.empty() if metrics is None else metrics)
            part = self.root / f".memory.duckdb.{os.getpid()}{PART_SUFFIX}"
            part.unlink(missing_ok=True)
            try:
                self._write_database(part, lake, merged)
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

    def _write_database(self, path: Path, lake: Lake, merged: Mapping[str, str]) -> None:
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
            for table in () if lake.key_id else FROM_THE_LAKE:  # DuckDB cannot read sealed files
                database.execute(f"create view {table.name} as {_view_of(table, lake, merged)}")
            database.execute("use memory")
            database.execute("detach made")

    def _brief_path(self, project_id: str) -> Path:
        return self.root / project_id / "brief.md"


def lend_sealed(database: Any, lake: Lake, query: str, merged: Mapping[str, str]) -> None:
    """
    Let an open DuckDB connection read the tables of a sealed lake that `query` names, from memory.

    They say what the views say, with `merged` as `publish_database` takes it. Does nothing where the lake is
    not sealed. Raises KeyUnavailable and FileDamaged.
    """
    for table in FROM_THE_LAKE if lake.key_id else ():
        if re.search(rf"\b{table.name}\b", query, re.IGNORECASE):
            rows = each_key_once(table, lake.read(table))
            names = [merged.get(name, name) for name in values(rows, "project_id")]
            position = rows.schema.get_field_index("project_id")
            field = rows.schema.field(position)
            database.register(table.name, rows.set_column(position, field, pa.array(names, field.type)))


def _view_of(table: Table, lake: Lake, merged: Mapping[str, str]) -> str:
    """Return the SELECT over the live files of a lake table; shadowed sessions and repeated keys left out."""
    files = lake.manifest.live(table.name)
    if not files:
        columns = ", ".join(f"null::{_sql_type(field)} as {field.name}" for field in table.arrow)
        return f"select {columns} where false"
    union = " union all ".join(_rows_of(file, files, lake, merged) for file in files)
    key = ", ".join(table.key)
    order = ", ".join(["file", "line", "block"] if table is TURNS else list(table.key))
    return f"select * from ({union}) qualify row_number() over (partition by {key} order by {order}) = 1"


def _rows_of(file: LakeFile, files: list[LakeFile], lake: Lake, merged: Mapping[str, str]) -> str:
    newer = [f for f in files if f.partition == file.partition and f.generation > file.generation]
    hidden = sorted({session for f in newer for session in f.sessions})
    source = f"from read_parquet({_quoted(str(lake.root / file.path))}, hive_partitioning = false)"
    project = merged.get(file.partition)
    columns = f"* replace ({_quoted(project)} as project_id)" if project else "*"
    if not hidden:
        return f"select {columns} {source}"
    return f"select {columns} {source} where session_id not in ({', '.join(map(_quoted, hidden))})"


def _sql_type(field: "pa.Field[Any]") -> str:
    kinds = {"string": "varchar", "double": "double", "int32": "integer", "int16": "smallint"}
    if pa.types.is_timestamp(field.type):
        return "timestamptz"
    if pa.types.is_list(field.type):
        return f"{kinds[str(field.type.value_type)]}[]"
    return kinds[str(field.type)]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
