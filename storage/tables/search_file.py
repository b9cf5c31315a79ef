"""The file of the search index: its layout, how it is opened, and whether it and the tables are there."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from cortex.hooks.evidence.index import SEARCH_VERSION, layout_version
from cortex.storage.lake.manifest import REPLACED_BY, ManifestNotes, Output
from cortex.transforms.errors import TablesDamaged

SEARCH_FILE = "search.sqlite"
SEARCH_FILE_SIDECARS = ("-wal", "-shm", "-journal")

# A part is a table of a scope. `bodies` hold what a row says: JSON, in the order of the part's columns.
_LAYOUT = (
    "create table parts (part integer primary key, scope text not null, name text not null,"
    " columns text not null, rows integer not null, words integer not null, dimensions integer not null,"
    " unique (scope, name))",
    "create table bodies (row integer primary key, part integer not null, key text not null,"
    " hash integer not null, body blob not null, label text)",
    "create index keys on bodies (part, key)",
    # What rows are asked for by together: memories that say where the work stands by their type, passages by
    # their section of a session.
    "create index labels on bodies (part, label) where label is not null",
    # What was counted of a row, packed, so that it can be taken out again.
    "create table texts (row integer primary key, packed blob not null)",
    "create table postings (word text not null, part integer not null, entries blob not null,"
    " primary key (word, part)) without rowid",
    # A row's vector in half precision, and also as one byte per number, in blocks, for choosing.
    "create table vectors (row integer primary key, vector blob not null)",
    "create table blocks (part integer not null, block integer not null, rows blob not null,"
    " scales blob not null, codes blob not null, primary key (part, block))",
    # What the policy says to a search, for a reader that has no policy: the prompt hook.
    "create table settings (name text primary key, value text not null) without rowid",
    "create table word_ranks (word text primary key, rank integer not null) without rowid",
    # What a repository disagrees with, and how that is said.
    "create table marks (scope text not null, memory_id text not null, mark text not null,"
    " primary key (scope, memory_id)) without rowid",
)
_PAGE_BYTES = 8_192
# Nobody but the holder of the lease writes; this is for what a killed one left to be undone.
_WAIT_SECONDS = 60.0


@contextmanager
def read_index(path: Path) -> Iterator[sqlite3.Connection | None]:
    """
    Yield a connection to read by; None if no index has this layout.

    A reader sees the index as it was when it asked first, also while a run writes.
    """
    if not path.is_file():
        yield None
        return
    with closing(_opened(path)) as connection:
        yield connection if layout_version(connection) == SEARCH_VERSION else None


def _opened(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    # On a disk that is read only there is no writer, and no place for the file that readers share.
    for options in ("mode=rw", "mode=ro&immutable=1"):
        connection = sqlite3.connect(
            f"{uri}?{options}", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
        )
        try:
            connection.execute("pragma query_only = on")
            connection.execute("select count(*) from sqlite_master").fetchone()
            return connection
        except sqlite3.OperationalError:
            connection.close()
    raise sqlite3.DatabaseError(f"{path} cannot be read")


@contextmanager
def write_index(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection within a transaction: all of the block is written or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        remove_index(path)
    with closing(_opened_to_write(path)) as connection:
        connection.execute("begin immediate")
        if layout_version(connection) != SEARCH_VERSION:
            create_layout(connection)
        yield connection
        connection.execute("commit")


def _opened_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection; an index of another layout, or another file, is replaced by an empty one."""
    for _ in range(2):
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            if layout_version(connection) in (0, SEARCH_VERSION):
                connection.execute(f"pragma page_size = {_PAGE_BYTES}")
                connection.execute("pragma journal_mode = wal")  # so that readers never wait
                connection.execute("pragma synchronous = normal")
                connection.execute("pragma secure_delete = on")
                return connection
        except sqlite3.OperationalError:
            connection.close()
            raise
        except sqlite3.DatabaseError:
            pass
        connection.close()
        remove_index(path)
    raise sqlite3.DatabaseError(f"{path} cannot be replaced")


def create_layout(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty index."""
    for statement in _LAYOUT:
        connection.execute(statement)
    connection.execute(f"pragma user_version = {SEARCH_VERSION}")


def purge_index(path: Path) -> None:
    """Rewrite the file, so that no page of it holds bytes of rows that are gone."""
    if not path.is_file():
        return
    with closing(_opened_to_write(path)) as connection:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")


def complete_index(path: Path) -> None:
    """Bring what SQLite keeps next to the file into it, so that the file alone is the index."""
    if not path.with_name(f"{path.name}-wal").is_file():
        return
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")


def remove_index(path: Path) -> None:
    """Remove the index with what SQLite keeps next to it."""
    if path.is_dir() and not path.is_symlink():  # damaged from outside
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    remove_index_sidecars(path)


def remove_index_sidecars(path: Path) -> None:
    """Remove what SQLite keeps next to the file; it would be written into another that takes its place."""
    for suffix in SEARCH_FILE_SIDECARS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def is_sound(path: Path) -> bool:
    """Return whether the whole file can be read."""
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("pragma quick_check(1)").fetchone() == ("ok",))
    return False


def parts_in(path: Path) -> set[tuple[str, str]]:
    """Return scope and name of what an index holds; nothing if it cannot be read."""
    with suppress(sqlite3.DatabaseError), read_index(path) as connection:
        return set(connection.execute("select scope, name from parts")) if connection else set()
    return set()


def has_part(path: Path, scope: str, name: str) -> bool:
    """Return whether an index holds a table of a scope; not if it cannot be read."""
    select = "select 1 from parts where scope = ? and name = ?"
    with suppress(sqlite3.DatabaseError), read_index(path) as connection:
        return connection is not None and connection.execute(select, (scope, name)).fetchone() is not None
    return False


# -- Whether what runs noted as made is there: a look at folders, which opens no table.

# Stages whose output is a table of each scope, and that table.
TABLE_OF = {"embed": "passages", "link": "edges", "decay": "memories"}

# The published database and its counts, made of all scopes.
DATABASE = Output("publish", "all")

DATABASE_FILE = "published/memory.duckdb"


def has_dataset(tables: Path, scope: str, name: str) -> bool:
    """Return whether a scope has a dataset; one without rows may never have been written."""
    # A folder without a version is what a kill or a full disk left of the first write.
    return any((tables / scope / f"{name}.lance" / "_versions").glob("*.manifest"))


def published_brief(home: Path, project_id: str) -> str:
    """Return the published brief of a project; empty when there is none."""
    try:
        return (home / "published" / project_id / "brief.md").read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):  # damaged from outside: the next run makes it again
        return ""


def is_output_there(home: Path, output: Output) -> bool:
    """Return whether what a stage made for a scope is on disk."""
    if output.stage in TABLE_OF:
        tables, name = home / "tables", TABLE_OF[output.stage]
        return has_dataset(tables, output.scope, name) and has_part(tables / SEARCH_FILE, output.scope, name)
    return output.stage != "render" or bool(published_brief(home, output.scope))


def _is_there(home: Path, output: Output, indexed: set[tuple[str, str]]) -> bool:
    if output.stage not in TABLE_OF:
        return is_output_there(home, output)
    name = TABLE_OF[output.stage]
    return has_dataset(home / "tables", output.scope, name) and (output.scope, name) in indexed


def has_output(home: Path, notes: ManifestNotes, output: Output) -> bool:
    """Return whether what a stage noted as made is there, or was nothing to begin with."""
    inputs = notes.outputs.get(output)
    return is_output_there(home, output) or (inputs is not None and notes.empty.get(output) == inputs)


def check_projections(home: Path, notes: ManifestNotes) -> None:
    """Raise TablesDamaged where tables or published files are gone that a run noted as made."""
    # One look for all: of 1,000 projects each by itself would take a second.
    indexed = parts_in(home / "tables" / SEARCH_FILE)
    gone = sorted(
        output.scope
        for output, inputs in notes.outputs.items()
        if output.stage in REPLACED_BY
        and notes.empty.get(output) != inputs
        and not _is_there(home, output, indexed)
    )
    if gone:
        raise TablesDamaged(f"Tables or published files of {', '.join(dict.fromkeys(gone))} are gone.")
    if DATABASE in notes.outputs and not (home / DATABASE_FILE).is_file():
        raise TablesDamaged(f"{home / DATABASE_FILE} is gone.")
