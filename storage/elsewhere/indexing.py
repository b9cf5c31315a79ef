"""The search index of a copy: machines share the tables, and each makes the index of them itself."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pyarrow as pa

from cortex.storage.ground.files import write_atomically, writing_to
from cortex.storage.lake.lake import Lake
from cortex.storage.tables.lance_tables import LanceTables
from cortex.storage.tables.lance_writing import ROW_HASH, hashes_in
from cortex.storage.tables.search_file import (
    SEARCH_FILE,
    complete_index,
    parts_in,
    remove_index,
)
from cortex.storage.tables.search_index import SearchIndex
from cortex.storage.tables.tables import (
    HAS_VECTOR,
    INDEX_TEXT,
    PROJECTED,
    VECTOR,
    VECTOR_MODEL,
    with_vectors,
)
from cortex.transforms.errors import FileDamaged, TablesDamaged
from cortex.transforms.schemas import VECTORS

# Which tables changed here since the index was last in step with them; there is none if it is.
UNINDEXED_FILE = Path("runs") / "remote-unindexed.json"

_DATASET_FILE = re.compile(r"tables/([^/]+)/([a-z]+)\.lance/.+", re.DOTALL)

# A scope, and the name of a table.
_Part = tuple[str, str]


def note_unindexed(home: Path, paths: Iterable[str]) -> None:
    """Note before files of the store come or go (`paths`) which tables the index is then to follow."""
    matches = filter(None, map(_DATASET_FILE.fullmatch, paths))
    changed = {(match[1], match[2]) for match in matches if match[2] in PROJECTED}
    if parts := sorted(changed | _unindexed(home)):
        path = home / UNINDEXED_FILE
        with writing_to(home):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(parts).encode())


def index_tables(home: Path) -> None:
    """
    Bring the search index in step with the tables that were noted; repeated after a kill.

    Of a table that cannot be indexed here the index then has nothing: the next run makes it from the lake.
    """
    parts = _unindexed(home)
    if not parts:
        return
    tables, lake, path = LanceTables(home), Lake(home), home / "tables" / SEARCH_FILE
    vectors_of = cache(lambda model: lake.read(VECTORS, model))
    with writing_to(home):
        try:
            for scope, name in sorted(parts):
                _index_table(SearchIndex(path), tables, vectors_of, scope, name)
        except sqlite3.OperationalError:  # of the disk, not of what the file holds
            raise
        except sqlite3.DatabaseError:
            remove_index(path)
        complete_index(path)
        (home / UNINDEXED_FILE).unlink(missing_ok=True)


def _index_table(
    index: SearchIndex, tables: LanceTables, vectors_of: Callable[[str], pa.Table], scope: str, name: str
) -> None:
    try:
        rows = _rows_of(tables, vectors_of, scope, name) if tables.exists(scope, name) else None
    except (TablesDamaged, FileDamaged):
        rows = None
    if rows is None:
        index.remove(scope, name)
    else:
        index.replace(scope, name, rows, hashes_in(rows))


def _rows_of(
    tables: LanceTables, vectors_of: Callable[[str], pa.Table], scope: str, name: str
) -> pa.Table | None:
    """Return a table's rows with their vectors; None if the lake does not have these any more."""
    import pyarrow.compute as pc  # here: most looks at a copy bring nothing in

    rows = tables.open(scope, name).read(
        [*PROJECTED[name].arrow.names, INDEX_TEXT, HAS_VECTOR, VECTOR_MODEL, ROW_HASH]
    )
    if HAS_VECTOR not in rows.schema.names or not pc.any(rows[HAS_VECTOR]).as_py():
        return rows
    if VECTOR_MODEL not in rows.schema.names:  # of an earlier version
        return None
    models = pc.unique(rows[VECTOR_MODEL].drop_null()).to_pylist()
    if len(models) != 1:
        return None
    searched = with_vectors(rows.drop_columns([VECTOR_MODEL]), vectors_of(str(models[0])))
    if VECTOR not in searched.schema.names:
        return None
    is_whole = pc.is_valid(searched[VECTOR]).to_pylist() == rows[HAS_VECTOR].to_pylist()
    return searched if is_whole else None


def _unindexed(home: Path) -> set[_Part]:
    try:
        parts = json.loads((home / UNINDEXED_FILE).read_bytes())
        return {(str(scope), str(name)) for scope, name in parts}
    except FileNotFoundError:
        return set()
    except (ValueError, TypeError):  # damaged from outside
        folders = (home / "tables").glob("*/*.lance")
        return {(path.parent.name, path.stem) for path in folders} | parts_in(home / "tables" / SEARCH_FILE)
