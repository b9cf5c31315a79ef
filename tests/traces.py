"""Looks for a text in every byte of a folder, and in what the files of known formats decode to."""

import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from cortex.storage.tables.lance_tables import lancedb


def traces(home: Path, *texts: str) -> list[str]:
    """Return the files below `home` that hold any of `texts`, raw or decoded, whatever the case."""
    sought = [text.casefold() for text in texts]
    places = []
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        if any(text in words.casefold() for words in _texts_of(path) for text in sought):
            places.append(str(path.relative_to(home)))
    for dataset in sorted(home.rglob("*.lance")):
        if dataset.is_dir() and any(t in rows.casefold() for rows in _versions(dataset) for t in sought):
            places.append(str(dataset.relative_to(home)))
    return places


def name_patterns(home: Path) -> set[str]:
    """Return the names of the files below `home`, without what is of one content, moment or process."""
    names = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    return {re.sub(r"[0-9a-f]*[0-9][0-9a-fTZ-]*", "N", name) for name in names}


def _texts_of(path: Path) -> Iterator[str]:
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        with suppress(OSError, EOFError):
            raw += gzip.decompress(raw)
    yield raw.decode("utf-8", "replace")
    yield raw.decode("utf-16-le", "replace")
    if path.suffix == ".parquet":
        yield _spelt(pq.read_table(path, partitioning=None).to_pylist())
    if path.suffix == ".duckdb":
        yield from _texts_of_database(path)
    if path.suffix == ".sqlite":
        yield from _texts_of_index(path)


def _texts_of_database(path: Path) -> Iterator[str]:
    """Yield the rows of every table in a DuckDB file; its views read other files."""
    with duckdb.connect(str(path), read_only=True) as database:
        for (name,) in database.sql("select table_name from duckdb_tables()").fetchall():
            yield _spelt(database.sql(f"from {name}").to_arrow_table().to_pylist())


def _texts_of_index(path: Path) -> Iterator[str]:
    """Yield the rows of an index, also what is packed, and the words that a hook's finds them by."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as index:
        names = {name for (name,) in index.execute("select name from sqlite_master where type = 'table'")}
        for name in sorted(names):
            if not name.startswith(("note_words", "common_words")):
                rows = index.execute(f"select * from {name}").fetchall()
                yield json.dumps([[_plain(value) for value in row] for row in rows], ensure_ascii=False)
        if "texts" in names:
            yield from (
                zlib.decompress(packed).decode() for (packed,) in index.execute("select packed from texts")
            )
        if "note_words" in names:
            index.execute("create virtual table temp.held using fts5vocab('main', 'note_words', 'row')")
            yield json.dumps(index.execute("select term from held").fetchall(), ensure_ascii=False)


def _versions(dataset: Path) -> Iterator[str]:
    """Yield the rows of every version that is left."""
    table = lancedb().connect(str(dataset.parent)).open_table(dataset.stem)
    for version in table.list_versions():
        table.checkout(version["version"])
        yield _spelt(table.to_arrow().to_pylist())


def _spelt(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
