"""What others read: briefs, the hooks' project map, and a DuckDB file with Parquet snapshots and views."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from cortex.hooks import branches as hook_branches
from cortex.hooks import brief, health
from cortex.storage.filesystem.files import replacing_stored, write_stored, writing_to
from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import LakeFile
from cortex.storage.published.catalogue import PROJECTS_FILE, read_columns
from cortex.storage.tables.search_file import published_brief
from cortex.transforms.brief import ARCHIVE_NAME, EXPLANATION_NAME
from cortex.transforms.brief.explanation import BranchLine, BranchTips
from cortex.transforms.database import sql_text
from cortex.transforms.schemas import (
    CALLS,
    EDGES,
    EVENTS,
    JOURNAL,
    MEMORIES,
    METRICS,
    OUTCOMES,
    POLICY_TABLES,
    PROJECTS,
    SESSIONS,
    TELLING_ORDER,
    TURNS,
    USES,
    Table,
)

# -- What `memory.duckdb` and `cortex sql` show besides the lake's own tables: snapshots, views, comments.

# What is read from the lake itself.
FROM_THE_LAKE = (TURNS, EVENTS, JOURNAL, CALLS)

# What a run makes from it and publishes, as a table and as Parquet.
RANKED_BY = (TELLING_ORDER, *POLICY_TABLES)
SNAPSHOTS = (MEMORIES, EDGES, METRICS, USES, OUTCOMES, PROJECTS, SESSIONS, *RANKED_BY)

# Views on snapshots: queries of transforms/sql that a run asks of the same tables.
RANKINGS = ("brief_candidates",)

# Turns whose words somebody chose: what a search by meaning looks through.
_PROSE = ("prompt", "command", "text", "rejection", "choice", "plan", "summary", "recap")

# Views on `turns`, by name.
LAKE_VIEWS = {
    "passages": (
        "select turn_id, project_id, session_id, agent_id, kind, said_at, text, trust, git_branch, file, "
        f"line from turns where kind in ({', '.join(repr(kind) for kind in _PROSE)})"
    ),
    "tool_calls": (
        "select call.turn_id, call.project_id, call.session_id, call.agent_id, call.said_at, call.tool_name, "
        "call.text as argument, call.tool_input, result.tool_status as status, result.text as result, "
        "epoch(result.said_at - call.said_at) as seconds, call.git_branch, call.cwd, call.file, call.line "
        "from turns as call left join turns as result on result.kind = 'tool_result' "
        "and result.project_id = call.project_id and result.session_id = call.session_id "
        "and result.tool_use_id = call.tool_use_id where call.kind = 'tool_call'"
    ),
}

VIEW_MEANINGS = {
    "turns": "What was said and done: prompts, answers, tool calls and their results.",
    "events": "What was noticed in the turns: decisions, rejections, errors resolved, files changed.",
    "journal": "Every change that was made on purpose: remember, edit, pin, forget, merge, recall.",
    "calls": "What programs did through the MCP server, up to the last run; cortex audit has those since.",
    "memories": "The facts kept, with type, status, confidence and the lines they rest on.",
    "edges": "Relations between memories.",
    "metrics": "Figures by session: corrections, decisions made twice, files read again.",
    "uses": "What sessions did with the memories that they were shown: used, cited, corrected.",
    "outcomes": "What came of decisions: reverted, complained about, contradicted, or held.",
    "projects": "The projects, with folders, sessions and how much each remembers.",
    "sessions": "The sessions: when, on which branch, what came of each and what was left open.",
    "telling_order": "Memories in the order in which a language model would tell them; without one, nothing.",
    "thresholds": "The thresholds of the policy that is in force.",
    "memory_types": "The policy by type of memory: half-life, and room in a brief.",
    "event_types": "The policy by type of event.",
    "brief_candidates": "What the brief of each project chooses from, in order, with rank and reason.",
    "passages": "The turns that are prose: prompts, answers, plans, choices, summaries.",
    "tool_calls": "One row a tool call, with its result, status and seconds.",
}

_VIEW_COLUMNS = {
    "brief_candidates": {
        "project_id": "project whose brief it is",
        "section": "memory type whose section it stands in",
        "kind": "plans, or its memory type",
        "position": "its place among those of its kind, from 1",
        "is_candidate": "among those that the brief chooses from",
        "memory_id": "memory of the project, or of scope 'global'",
        "rank": "rank, with what is added for a person's words",
        "place": "place in the order of a language model, if there is one",
        "is_on_purpose": "a person remembered, edited or pinned it",
        "sessions_since": "sessions since it was said or recalled, of a type that sessions pass by [count]",
        "tier": "room that it gets: full, short or archive; null: no such type",
        "reason": "why it stands there",
    },
    "tool_calls": {
        "argument": "salient argument of the call: a command, a path",
        "status": "one of TOOL_STATUSES; null where no result came",
        "result": "what came back, redacted",
        "seconds": "from the call to its result [seconds]",
    },
}

ALL_NAMES = tuple(VIEW_MEANINGS)


def create_rankings(database: Any) -> None:
    """Create the views of RANKINGS in a database that has the snapshots."""
    for name in RANKINGS:
        database.execute(f"create view {name} as {sql_text(name)}")


def comments(*, is_sealed: bool) -> Iterator[str]:
    """Yield the statements that comment on every table, view and column; of a sealed lake on snapshots."""
    for table in SNAPSHOTS if is_sealed else (*FROM_THE_LAKE, *SNAPSHOTS):
        kind = "table" if table in SNAPSHOTS else "view"
        yield f"comment on {kind} {table.name} is {_quoted(VIEW_MEANINGS[table.name])}"
        for name in table.arrow.names:
            yield f"comment on column {table.name}.{name} is {_quoted(table.meaning(name))}"
    for ranking in RANKINGS:
        yield f"comment on view {ranking} is {_quoted(VIEW_MEANINGS[ranking])}"
        for name, meaning in _VIEW_COLUMNS[ranking].items():
            yield f"comment on column {ranking}.{name} is {_quoted(meaning)}"
    for view in () if is_sealed else LAKE_VIEWS:
        yield f"comment on view {view} is {_quoted(VIEW_MEANINGS[view])}"
        own = _VIEW_COLUMNS.get(view, {})
        listed = LAKE_VIEWS[view].partition(" from ")[0].removeprefix("select ").split(", ")
        for name in (column.rpartition(" as ")[2].rpartition(".")[2] for column in listed):
            meaning = own.get(name) or TURNS.meaning(name)
            yield f"comment on column {view}.{name} is {_quoted(meaning)}"


# -- The snapshots of a store's tables as Parquet, written and read piece by piece.

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
        file = None
        try:
            file = pq.ParquetFile(path)
            known = json.loads((file.schema_arrow.metadata or {}).get(FINGERPRINTS, b"{}"))
            for group in range(file.num_row_groups if known else 0):
                for scope, begin, count in _runs_in(file.read_row_group(group, columns=["project_id"])):
                    self._places.setdefault(scope, []).append((group, begin, count))
            self.fingerprints = known
        except _UNREADABLE:
            self._places = {}
        # Without a reference to itself: the file is closed as soon as nobody reads it.
        self._group = lru_cache(maxsize=2)(partial(_read_group, file, table))

    def rows_of(self, scope: str) -> pa.Table | None:
        """Return the rows of a scope; None if they cannot be read."""
        try:
            pieces = [self._group(at).slice(begin, count) for at, begin, count in self._places.get(scope, ())]
        except _UNREADABLE:
            return None
        return pa.concat_tables([self._table.empty(), *pieces])


def _read_group(file: Any, table: Table, number: int) -> pa.Table:
    rows: pa.Table = file.read_row_group(number)
    return rows.replace_schema_metadata().cast(table.arrow)


def _runs_in(rows: pa.Table) -> Iterator[tuple[str, int, int]]:
    """Yield each run of rows of one project: its id, where it begins, how many rows it has."""
    codes = rows["project_id"].combine_chunks().dictionary_encode()
    numbers = codes.indices.to_numpy()
    starts = [] if not len(numbers) else [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]
    for begin, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield str(codes.dictionary[int(numbers[begin])]), begin, end - begin


def write_snapshot(
    home: Path, path: Path, table: Table, pieces: Iterable[pa.Table], fingerprints: Mapping[str, str]
) -> None:
    """Write a snapshot of rows of the columns of `table`, in the place of the one that is at `path`."""
    import pyarrow.parquet as pq

    metadata = {FINGERPRINTS: json.dumps(fingerprints, sort_keys=True)} if fingerprints else {}
    schema = table.arrow.with_metadata({**(table.arrow.metadata or {}), **metadata})
    with (
        replacing_stored(home, path) as part,
        pq.ParquetWriter(part, schema, compression="zstd") as writer,
    ):
        for rows in _grouped(table, pieces):
            writer.write_table(rows.cast(schema))


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


# -- What others read: briefs, the hooks' project map, and a DuckDB file with Parquet snapshots.

# What earlier versions published of each project, for a hook that reads the search index now.
_FORMER_HOOK_INDEX = "hook-index.sqlite"

# The oldest storage format that current DuckDB clients share, so that older ones open the file too.
DUCKDB_STORAGE_VERSION = "v1.0.0"

# The rows of a snapshot, or what yields them piece by piece once they are written.
SnapshotRows = pa.Table | Callable[[], Iterable[pa.Table]]


class Published:
    """The folder `<home>/published/`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.root = home / "published"
        self.database_path = self.root / "memory.duckdb"

    def brief(self, project_id: str) -> str:
        """Return the published brief of a project; empty when there is none."""
        return published_brief(self._home, project_id)

    def has_brief(self, project_id: str) -> bool:
        """Return whether a brief is published that can be read."""
        return bool(self.brief(project_id))

    def publish_brief(self, project_id: str, text: str) -> bool:
        """Publish a brief; return whether it differs from the last one (else nothing is written)."""
        if self.brief(project_id) == text:
            return False
        path = self._brief_path(project_id)
        write_stored(self._home, path, text.encode())
        return True

    def archive(self, project_id: str) -> str:
        """Return a project's published archive of older decisions; empty when there is none."""
        try:
            return (self.root / project_id / ARCHIVE_NAME).read_text(encoding="utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def publish_archive(self, project_id: str, text: str) -> bool:
        """Publish the archive, remove it if it is empty; return whether anything changed."""
        if self.archive(project_id) == text:
            return False
        path = self.root / project_id / ARCHIVE_NAME
        with writing_to(self._home):
            if text:
                write_stored(self._home, path, text.encode())
            else:
                path.unlink(missing_ok=True)
        return True

    def publish_explanation(self, project_id: str, document: Mapping[str, object]) -> None:
        """Publish why each candidate is in a project's brief or not (`transforms.brief.explanation`)."""
        self._publish_map(self.root / project_id / EXPLANATION_NAME, document)

    def explanation(self, project_id: str) -> dict[str, Any]:
        """Return what `publish_explanation` published of a project; empty if that cannot be read."""
        try:
            document = json.loads((self.root / project_id / EXPLANATION_NAME).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def publish_branches(self, project_id: str, lines: Sequence[BranchLine], branches: BranchTips) -> bool:
        """Publish which lines of the brief hold on which branches; nothing if all hold on every one."""
        path = self.root / project_id / hook_branches.NOTES
        if not lines:
            is_there = path.is_file()
            with writing_to(self._home):
                path.unlink(missing_ok=True)
            return is_there
        document = {
            "lines": [
                [line.number, hook_branches.checksum_of(line.text), list(line.branches), line.is_marked]
                for line in lines
            ],
            "tips": dict(branches.tips),
            "within": {name: sorted(commits) for name, commits in branches.within.items()},
        }
        text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True).encode()
        if path.is_file() and path.read_bytes() == text:
            return False
        write_stored(self._home, path, text)
        return True

    def remove_former(self) -> None:
        """Remove what earlier versions published and nothing reads any more."""
        with writing_to(self._home):
            for path in self.root.glob(f"*/{_FORMER_HOOK_INDEX}"):
                path.unlink(missing_ok=True)

    def projects(self) -> list[str]:
        """Return the projects that something is published of, sorted."""
        folders = self.root.iterdir() if self.root.is_dir() else ()
        return sorted(path.name for path in folders if path.is_dir())

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

    def publish_catalogue(self, document: Mapping[str, object]) -> None:
        """Publish the projects for commands that look around (`storage.catalogue.projects_document`)."""
        self._publish_map(self.root / PROJECTS_FILE, document)

    def publish_surfaces(self, by_folder: Mapping[str, str]) -> None:
        """Publish folder → file that holds the brief, so that the hooks do not say it twice."""
        if by_folder or (self._home / brief.SURFACES).is_file():
            self._publish_map(self._home / brief.SURFACES, by_folder)

    def _publish_map(self, path: Path, document: Mapping[str, object]) -> None:
        text = json.dumps(document, ensure_ascii=False, indent=1).encode()
        if path.is_file() and path.read_bytes() == text:
            return
        write_stored(self._home, path, text)

    def publish_database(
        self,
        lake: Lake,
        derived: Mapping[str, SnapshotRows],
        merged: Mapping[str, str] = MappingProxyType({}),
        fingerprints: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        """
        Write `memory.duckdb`: the tables of SNAPSHOTS, and views of turns, events, journal and of both.

        `derived` holds the snapshots' rows by name, asked for in the order of SNAPSHOTS; a missing one is
        empty. They are in the file itself and next to it as Parquet. The views read the lake's live files
        where they are now, so the file stays small and any DuckDB client can open it read-only; a moved store
        needs it written again.
        Older readers keep the file they opened. Of a sealed lake the views are left out: DuckDB cannot read
        it. `merged` gives the project that another was merged into: all views know it under that id.
        `fingerprints` goes into the snapshots' Parquet: by name and scope, what `snapshot` gives back.
        """
        with writing_to(self._home):
            for table in SNAPSHOTS:
                rows = derived.get(table.name, table.empty())
                inputs = fingerprints.get(table.name, {})
                if table in POLICY_TABLES and self._holds(table, rows):
                    continue
                pieces = [rows] if isinstance(rows, pa.Table) else rows()
                write_snapshot(self._home, self._path_of(table), table, pieces, inputs)
            self._replace_database(lake, merged)

    def publish_views(self, lake: Lake, merged: Mapping[str, str]) -> None:
        """Write `memory.duckdb` from the snapshots that are here, which another machine made."""
        with writing_to(self._home):
            self._replace_database(lake, merged)

    def _replace_database(self, lake: Lake, merged: Mapping[str, str]) -> None:
        with replacing_stored(self._home, self.database_path) as part:
            self._write_database(part, lake, merged)

    def drop_database(self) -> None:
        """Remove `memory.duckdb`, so that the next run writes it and its snapshots again."""
        with writing_to(self._home):
            self.database_path.unlink(missing_ok=True)

    def snapshot(self, table: Table) -> SnapshotFile:
        """Return a snapshot for reading, scope by scope; of nothing if it is unreadable."""
        return SnapshotFile(self._path_of(table), table)

    def _holds(self, table: Table, rows: SnapshotRows) -> bool:
        try:
            return bool(isinstance(rows, pa.Table) and read_columns(self._path_of(table)).equals(rows))
        except _UNREADABLE:
            return False

    def _path_of(self, table: Table) -> Path:
        return self.root / f"{table.name}.parquet"

    def _write_database(self, path: Path, lake: Lake, merged: Mapping[str, str]) -> None:
        import duckdb

        try:
            with duckdb.connect(":memory:") as database:
                database.execute("set enable_progress_bar = false")  # it would be in a command's output
                # Without a place it would put rows that do not fit into memory where the command is called.
                database.execute(f"set temp_directory = {_quoted(f'{path}.spill')}")
                self._write_tables(database, path, lake, merged)
        except duckdb.Error:
            lake.check_readable(FROM_THE_LAKE)
            raise

    def _write_tables(self, database: Any, path: Path, lake: Lake, merged: Mapping[str, str]) -> None:
        database.execute(
            f"attach {_quoted(str(path))} as made (storage_version {_quoted(DUCKDB_STORAGE_VERSION)})"
        )
        # A commit waits for the disk: one for all tables and views, one for the 200 comments.
        database.execute("use made; begin")
        for table in SNAPSHOTS:
            # From the file: the rows of a million memories are never in memory together.
            rows = _from_parquet(self._path_of(table))
            database.execute(f"create table {table.name} as {rows}")
        for table in () if lake.key_id else FROM_THE_LAKE:
            view = view_of(table, lake, merged, lambda file: _from_parquet(lake.root / file.path))
            database.execute(f"create view {table.name} as {view}")
        for name, select in ({} if lake.key_id else LAKE_VIEWS).items():
            database.execute(f"create view {name} as {select}")
        database.execute("commit; begin")
        create_rankings(database)
        # In one call: 240 took .12 s of processor time one by one, at any size of the store, and take .08.
        database.execute(";".join(comments(is_sealed=bool(lake.key_id))))
        database.execute("commit; use memory")
        database.execute("detach made")

    def _brief_path(self, project_id: str) -> Path:
        return self.root / project_id / "brief.md"


def view_of(
    table: Table,
    lake: Lake,
    merged: Mapping[str, str],
    source: Callable[[LakeFile], str],
    files: list[LakeFile] | None = None,
) -> str:
    """
    Return the SELECT over `files`, the live ones of a lake table, no shadowed session, no key twice.

    `source` gives the FROM clause for a file, `merged` the project that another was merged into.
    """
    files = lake.manifest.live(table.name) if files is None else files
    if not files:
        columns = ", ".join(f"null::{_sql_type(field)} as {field.name}" for field in table.arrow)
        return f"select {columns} where false"
    union = " union all ".join(_rows_of(file, files, merged, source(file)) for file in files)
    key = ", ".join(table.key)
    order = ", ".join(["file", "line", "block"] if table is TURNS else list(table.key))
    whole = f"select * from ({union}) qualify row_number() over (partition by {key} order by {order}) = 1"
    return _with_names_on_results(whole) if table is TURNS else whole


def _with_names_on_results(turns: str) -> str:
    """Return the SELECT over turns in which a result has its call's tool, which its record does not name."""
    is_result = "kind = 'tool_result' and tool_use_id is not null"
    called = "max(tool_name) over (partition by project_id, session_id, tool_use_id)"
    name = f"case when {is_result} then coalesce(tool_name, {called}) else tool_name end"
    return f"select * replace ({name} as tool_name) from ({turns})"


def _rows_of(file: LakeFile, files: list[LakeFile], merged: Mapping[str, str], source: str) -> str:
    newer = [f for f in files if f.partition == file.partition and f.generation > file.generation]
    hidden = sorted({session for f in newer for session in f.sessions})
    project = merged.get(file.partition)
    columns = f"* replace ({_quoted(project)} as project_id)" if project else "*"
    if not hidden:
        return f"select {columns} {source}"
    return f"select {columns} {source} where session_id not in ({', '.join(map(_quoted, hidden))})"


def _from_parquet(path: Path) -> str:
    # DuckDB takes the path for a pattern: of a store `[ab]` it would read a store `a` next to it.
    pattern = re.sub(r"[*?\[]", r"[\g<0>]", str(path))
    return f"from read_parquet({_quoted(pattern)}, hive_partitioning = false)"


def _sql_type(field: "pa.Field[Any]") -> str:
    kinds = {"string": "varchar", "double": "double", "int32": "integer", "int16": "smallint"}
    if pa.types.is_timestamp(field.type):
        return "timestamptz"
    if pa.types.is_list(field.type):
        return f"{kinds[str(field.type.value_type)]}[]"
    return kinds[str(field.type)]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
