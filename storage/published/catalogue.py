"""
What is published, read without opening the store: its tables, and whether a brief is still the one that
would be.

The projects are in a JSON file. The snapshots of the other tables are read by DuckDB, which takes half as
long to import as the library that writes them.
"""

import json
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cortex.hooks import branches, brief
from cortex.hooks.evidence.index import open_index
from cortex.storage.filesystem.git import state_of
from cortex.storage.lake.manifest import Manifest, ManifestNotes, Output, read_manifest
from cortex.storage.lake.noted_projects import KnownProject
from cortex.storage.published.reports import read_progress
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.staging import Staging
from cortex.storage.tables.search_file import DATABASE, SEARCH_FILE, published_brief
from cortex.transforms.brief import ARCHIVE_NAME, EXPLANATION_NAME
from cortex.transforms.errors import NotFound, NotReady, TablesDamaged
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.vocabulary import GLOBAL_SCOPE, Row

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


# -- Columns of published snapshots, kept by a process that looks at them again and again.

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

    # Arrow's own file: Arrow's threads let go of a Python one, which aborts a process at its end
    # (apache/arrow#33975, #50482). So ended 10 of 264 answers of recall that were right; since, 0 of 400.
    with _reading, pa.OSFile(str(path), "r") as source:
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


# -- What is published of the store as tables, read without opening it: for commands that only look around.

_MANIFEST = "runs/manifest.json"
PROJECTS_FILE = "catalogue.json"

USES_NAME, OUTCOMES_NAME = "uses", "outcomes"

# How what holds in every project is called where projects are listed.
GLOBAL_LABEL = "(global)"

# As DuckDB calls it. Python values of it need a library that is not installed with Cortex.
_INSTANT, _PLAIN_INSTANT = "TIMESTAMP WITH TIME ZONE", "TIMESTAMP"


class Catalogue:
    """The snapshots in `<home>/published/`, as the last run left them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._root = home / "published"

    @property
    def is_filled(self) -> bool:
        """Whether anything was ever committed to the store."""
        return (self._home / _MANIFEST).is_file()

    @property
    def is_ready(self) -> bool:
        """Whether a run has published the snapshots; the first one does so with the first briefs."""
        return self.is_filled and DATABASE in self.manifest.notes.outputs

    def _not_ready(self) -> NotFound:
        """Return the error of a store without snapshots yet: where its first run is, or how to start it."""
        progress = read_progress(self._home)
        if progress is not None and progress.is_at_work:
            return NotReady(
                f"not ready yet: the first run is at work ({progress.words}).",
                "This answers as soon as the first briefs are there. `cortex status` shows how far it is.",
            )
        if progress is not None:
            return NotReady(
                f"not ready yet: the first run was stopped ({progress.words}).", "Continue: cortex run"
            )
        if self.is_filled:
            return NotReady("not ready yet: the first run did not come to its end.", "Continue: cortex run")
        if self.waiting():
            return NotReady("transcripts are waiting, and none has been read yet.", "Read them: cortex run")
        return NotFound("nothing has been remembered yet.", "Begin with: cortex backfill")

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest of the last commit. Raises ManifestDamaged and SchemaMismatch."""
        return read_manifest(self._home / _MANIFEST)

    @property
    def has_waiting_entries(self) -> bool:
        """Whether an entry of the journal waits for a run: what is published does not know of it."""
        return any((self._home / "staging" / "journal").glob("*.json"))

    @property
    def state(self) -> tuple[object, ...]:
        """What changes with every commit and with every entry of the journal that waits for a run."""
        try:
            manifest = (self._home / _MANIFEST).stat()
        except OSError:
            return ()
        waiting = sorted(path.name for path in (self._home / "staging" / "journal").glob("*.json"))
        return (manifest.st_ino, manifest.st_mtime_ns, manifest.st_size, *waiting)

    def read(
        self,
        name: str,
        columns: Sequence[str] = (),
        where: Mapping[str, Collection[str | bool]] | None = None,
        *,
        order: str = "",
        limit: int | None = None,
    ) -> list[Row]:
        """
        Return rows of a snapshot, all columns or those named, with one of the values of each of `where`.

        `order` is the columns to order by, in SQL. Raises NotFound for an empty store, TablesDamaged if
        the snapshot is missing or cannot be read.
        """
        condition, values = _condition(where or {})
        ending = (f" order by {order}" if order else "") + (f" limit {limit}" if limit is not None else "")
        return self._select(name, columns, condition + ending, values)

    def read_table(self, name: str, columns: Sequence[str] = ()) -> "pa.Table":
        """
        Return a snapshot, all columns or those named, for those who compute with it. Raises as `read`.

        The process keeps the columns for as long as the snapshot is the same file.
        """
        import pyarrow as pa

        path = self._path_of(name)
        try:
            return read_columns(path, columns)
        except (pa.ArrowException, OSError) as error:
            raise TablesDamaged(f"The published file {path} cannot be read.") from error

    def ids_that_begin(self, name: str, key: str, word: str) -> list[str]:
        """Return the values of the column `key` of a snapshot that begin with `word`. Raises as `read`."""
        rows = self._select(name, [key], f" where starts_with({key}, ?) order by {key}", [word])
        return [row[key] for row in rows]

    def is_doubted(self, project_id: str, memory_id: str) -> bool:
        """Return whether the repository disagreed with a memory when the last run asked it."""
        import sqlite3

        asked = "select count(*) from marks where scope = ? and memory_id = ?"
        try:
            with closing(open_index(str(self._home / "tables" / SEARCH_FILE))) as index:
                return bool(index.execute(asked, (project_id, memory_id)).fetchone()[0])
        except sqlite3.Error:
            return False

    def edges_at(self, memory_id: str) -> list[Row]:
        """Return EDGES with a memory at one of their ends. Raises as `read`."""
        return self._select("edges", (), " where source_id = ? or target_id = ?", [memory_id, memory_id])

    def uses_of(self, memory_id: str) -> list[Row]:
        """Return USES of a memory, the newest first. Raises as `read`."""
        return self.read(USES_NAME, (), {"memory_id": [memory_id]}, order="shown_at desc, session_id")

    def outcomes_of(self, memory_ids: Sequence[str]) -> list[Row]:
        """Return OUTCOMES of decisions, the newest first; none where none are published. Raises as `read`."""
        if not memory_ids or not (self._root / f"{OUTCOMES_NAME}.parquet").is_file():
            return []
        order = "happened_at desc, kind, what"
        return self.read(OUTCOMES_NAME, (), {"memory_id": list(memory_ids)}, order=order)

    def memories_resting_on(self, session_id: str) -> list[Row]:
        """Return MEMORIES with evidence in a session, in the order they were first said. Raises as `read`."""
        rests = " where len(list_filter(evidence, lambda place: place.session_id = ?)) > 0"
        return self._select("memories", (), f"{rests} order by created_at, memory_id", [session_id])

    def count(self, name: str, where: Mapping[str, Collection[str | bool]]) -> int:
        """Return how many rows of a snapshot have one of the values of each of `where`. Raises as `read`."""
        condition, values = _condition(where)
        [row] = self._select(name, ["count(*) as total"], condition, values)
        return int(row["total"])

    def _select(self, name: str, columns: Sequence[str], ending: str, values: Sequence[object]) -> list[Row]:
        path = self._path_of(name)
        import duckdb

        listed = ", ".join(columns) or "*"
        rows = f"select {listed} from read_parquet(?, hive_partitioning = false){ending}"
        given = [_pattern_of(path), *values]
        try:
            kinds = self._database.execute(f"describe {rows}", given).fetchall()
            names = [(str(row[0]), str(row[1])) for row in kinds]
            cast = ", ".join(_as_plain(column, kind) for column, kind in names)
            result = self._database.execute(f"select {cast} from ({rows})", given).fetchall()
        except duckdb.Error as error:
            raise TablesDamaged(f"The published file {path} cannot be read.") from error
        return [
            {column: _in_utc(value) for (column, _), value in zip(names, row, strict=True)} for row in result
        ]

    def _path_of(self, name: str) -> Path:
        path = self._root / f"{name}.parquet"
        if path.is_file():
            return path
        if not self.is_ready:
            raise self._not_ready()
        raise TablesDamaged(f"The published file {path} is gone.")

    @cached_property
    def _database(self) -> "duckdb.DuckDBPyConnection":
        database = _shared_database().cursor()
        database.execute("set TimeZone = 'UTC'")
        return database

    def projects(self) -> list[Row]:
        """Return PROJECTS as they were last published. Raises as `read`."""
        rows = self._projects_file.get("projects")
        if rows is None:  # a store that an older version published
            return self.read("projects")
        return [{**row, "last_worked_at": _instant(row["last_worked_at"])} for row in rows]

    def named(self, name: str) -> list[KnownProject]:
        """Return the projects that `name` means for sure: an id, a name, a folder, that of a merged one."""
        rows = self._projects_file.get("projects", [])
        wanted, names = name.rstrip("/"), self._projects_file.get("names", {})
        return [_known(row) for row in rows if wanted in names.get(row["project_id"], ())]

    def project_called(self, project_id: str) -> list[KnownProject]:
        """Return the project of an id; none if unsure."""
        rows = self._projects_file.get("projects", [])
        return [_known(row) for row in rows if row["project_id"] == project_id]

    def everywhere(self) -> tuple[int, int]:
        """Return how many memories that hold in every project count, and how many have faded."""
        if "everywhere" in self._projects_file:
            active, faded = self._projects_file["everywhere"]
            return int(active), int(faded)
        rows = self.read("memories", ["status"], {"project_id": [GLOBAL_SCOPE]})
        active = sum(row["status"] == "active" for row in rows)
        return active, len(rows) - active

    @cached_property
    def _projects_file(self) -> Mapping[str, Any]:
        """Return what is published of the projects; empty if that is missing or damaged."""
        try:
            document = json.loads((self._root / PROJECTS_FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        is_whole = isinstance(document, dict) and {"projects", "names", "everywhere"} <= set(document)
        return document if is_whole else {}

    def text_of(self, project_id: str, *, archive: bool) -> str:
        """Return the published brief of a project, or its archive; "" if there is none."""
        if not archive:
            return published_brief(self._home, project_id)
        try:
            return (self._root / project_id / ARCHIVE_NAME).read_text(encoding="utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def text_on_branch(self, project_id: str, branch: str, text: str) -> str:
        """Return a project's brief as a session on a branch is given it."""
        return branches.followed(text, str(self._root / project_id), "", branch)

    def explanation_of(self, project_id: str) -> object:
        """Return why each candidate is in a project's published brief, as JSON; None if that is not."""
        try:
            return json.loads((self._root / project_id / EXPLANATION_NAME).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def project_at(self, folder: Path) -> str | None:
        """Return the id of the project whose folder this is, or one above it; None for one never seen."""
        try:
            return brief.find_project(str(self._root), [str(folder)])
        except ValueError as error:
            raise TablesDamaged("The published map of projects cannot be read.") from error

    def project_ids(self) -> list[str]:
        """Return the ids of the projects with a known folder, sorted; none if that cannot be read."""
        try:
            known = json.loads((self._root / "projects.json").read_bytes())
            return sorted(set(known.values()))
        except (OSError, ValueError, AttributeError, TypeError):
            return []

    def waiting(self) -> int:
        """Return how many transcripts are staged and not read yet."""
        return len(Staging(self._home).list_waiting())


def projects_document(
    projects: Sequence[Row], names: Mapping[str, Collection[str]], everywhere: tuple[int, int]
) -> dict[str, object]:
    """Return what is published of PROJECTS: their rows, all names of each, and the global counts."""
    rows = [
        {**row, "last_worked_at": row["last_worked_at"] and row["last_worked_at"].isoformat()}
        for row in projects
    ]
    return {
        "projects": rows,
        "names": {project_id: sorted(names[project_id]) for project_id in sorted(names)},
        "everywhere": list(everywhere),
    }


@lru_cache(maxsize=1)
def _shared_database() -> "duckdb.DuckDBPyConnection":
    """Return the database in memory that all catalogues of a process ask through cursors of their own."""
    import atexit

    import duckdb

    atexit.register(_shared_database.cache_clear)  # the library complains of what is left at the end
    return duckdb.connect(":memory:", config={"threads": 1})


def _known(row: Row) -> KnownProject:
    return KnownProject(row["project_id"], row["name"], tuple(row["folders"]))


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _condition(where: Mapping[str, Collection[str | bool]]) -> tuple[str, list[str | bool]]:
    parts = [f"{column} in ({', '.join('?' for _ in allowed)})" for column, allowed in where.items()]
    values = [value for allowed in where.values() for value in allowed]
    return (f" where {' and '.join(parts)}" if parts else ""), values


def _pattern_of(path: Path) -> str:
    # DuckDB takes the path for a pattern: of a store `[ab]` it would read a store `a` next to it.
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path))


def _as_plain(column: str, kind: str) -> str:
    if _INSTANT not in kind:
        return column
    return f"cast({column} as {kind.replace(_INSTANT, _PLAIN_INSTANT)}) as {column}"


def _in_utc(value: Any) -> Any:
    """Return a value of DuckDB's with its instants in UTC."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return {name: _in_utc(part) for name, part in value.items()}
    return [_in_utc(part) for part in value] if isinstance(value, list) else value


# -- Whether the brief that is published is the one that would be: found out without what makes briefs.

# What the global memories say in every brief, as the stage render notes it.
SHOWN_EVERYWHERE = Output("shown", GLOBAL_SCOPE)
# What that was made of: the table of the global memories, and the sessions that count how old they are.
SHOWN_FROM = Output("shown_from", GLOBAL_SCOPE)


def is_noted(notes: ManifestNotes, policy: Policy, settings: Settings, project: KnownProject) -> bool:
    """Return whether a run would publish for a project what one has noted, its tables being as they are."""
    return notes.briefs.get(project.project_id) == shown_from(notes, policy, settings, project)


def shown_from(notes: ManifestNotes, policy: Policy, settings: Settings, project: KnownProject) -> str:
    """Return a fingerprint of the tables, settings and repository that a brief shows; needs no model."""
    tables = [notes.outputs.get(Output(stage, project.project_id), "") for stage in ("link", "decay")]
    everywhere = notes.outputs.get(SHOWN_EVERYWHERE, "")
    return content_id(*tables, everywhere, policy.fingerprint, *other_inputs(settings, project))


def other_inputs(settings: Settings, project: KnownProject) -> tuple[str, str, str]:
    """Return what a brief depends on besides the tables: its budget, its project's name, the repository."""
    return str(brief_tokens(settings, project)), project.name, state_of(project.paths)


def brief_tokens(settings: Settings, project: KnownProject) -> int:
    """Return the budget of a project's brief as a person set it; 0 if nobody did."""
    if not settings.by_project:
        return settings.brief_tokens
    return settings.of_project(project.project_id, project.paths).brief_tokens
