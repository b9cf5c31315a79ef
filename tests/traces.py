"""Looks for a text in every byte of a folder, and in what the files of known formats decode to."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import lancedb
import pyarrow.parquet as pq


def traces(home: Path, *texts: str) -> list[str]:
    """Return the files below `home` that hold any of `texts`, raw or decoded, whatever the case."""
    sought = [text.casefold() for text in texts]
    places = []
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        if any(text in words.casefold() for words in _texts_of(path) for text in sought):
            places.append(str(path.relative_to(home)))
    for dataset in sorted(home.rglob("*.lance")):
        if dataset.is_dir() and any(
            t in rows.casefold() for rows in _versions(dataset, texts) for t in sought
        ):
            places.append(str(dataset.relative_to(home)))
    return places


def _texts_of(path: Path) -> Iterator[str]:
    raw = path.read_bytes()
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
    """Yield the rows of a hook index and the words that it finds them by."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as index:
        yield json.dumps(index.execute("select * from notes").fetchall(), ensure_ascii=False)
        index.execute("create virtual table temp.held using fts5vocab('main', 'note_words', 'row')")
        yield json.dumps(index.execute("select term from held").fetchall(), ensure_ascii=False)


def _versions(dataset: Path, words: tuple[str, ...]) -> Iterator[str]:
    """Yield the rows of every version that is left, and what the text index finds in each."""
    table = lancedb.connect(str(dataset.parent)).open_table(dataset.stem)
    for version in table.list_versions():
        table.checkout(version["version"])
        yield _spelt(table.to_arrow().to_pylist())
        if "index_text" in table.schema.names:
            for word in words:
                hits = table.search(word, query_type="fts", fts_columns="index_text").limit(100).to_arrow()
                # Words of the question alone prove nothing: the row found must hold the whole of it.
                yield _spelt(hits.drop_columns(["_score"]).to_pylist())


def _spelt(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
