"""The index that the prompt hook reads: a SQLite file for each project, written beside and renamed."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple
from pathlib import Path

from cortex.hooks import prompt, shown
from cortex.hooks.terms import index_terms
from cortex.storage.files import replacing
from cortex.storage.reference import common_words
from cortex.transforms.brief.hook_index import Note
from cortex.transforms.identity import content_id

# No text in it: words are found, lines are read from `notes`. The cutter folds case, accents and endings.
WORDS = "fts5(words, content='', detail=none, columnsize=0, tokenize='porter unicode61 remove_diacritics 2')"
LAYOUT = (
    "create table settings (name text primary key, value) without rowid",
    "create table stop_words (word text primary key) without rowid",
    "create table notes (id integer primary key, memory_id text, memory_type text, line text,"
    " updated_on text, confidence real, rank real, tokens integer, marks text,"
    " brief_mark integer, length real)",
    f"create virtual table note_words using {WORDS}",
    f"create virtual table common_words using {WORDS}",
)


def write_hook_index(
    path: Path, notes: Sequence[Note], settings: Mapping[str, float | str], stop_words: Iterable[str]
) -> bool:
    """
    Make the index at `path` hold these notes; return whether it did not already. Without notes it is removed.

    It is rebuilt beside the old one and renamed: no page of it remembers what was forgotten, and a hook that
    reads the old one goes on.
    """
    if not notes:
        existed = path.exists()
        path.unlink(missing_ok=True)
        return existed
    stop = list(stop_words)
    fingerprint = fingerprint_of(notes, settings, stop)
    if fingerprint_in(path) == fingerprint:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        os.close(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        _write(part, notes, {**settings, "made_from": fingerprint}, stop)
    return True


def fingerprint_of(notes: Sequence[Note], settings: Mapping[str, float | str], stop_words: list[str]) -> str:
    """Return what represents in an index all that it is made from."""
    rows = (json.dumps(astuple(note), default=str) for note in notes)
    return content_id(
        str(prompt.INDEX_VERSION), json.dumps(dict(settings), sort_keys=True), *stop_words, *rows
    )


def fingerprint_in(path: Path) -> str | None:
    """Return what the index at `path` was made from; None where there is none that can be read."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as index:
            row = index.execute("select value from settings where name = 'made_from'").fetchone()
    except sqlite3.Error:
        return None
    return str(row[0]) if row else None


def _write(
    path: Path, notes: Sequence[Note], settings: Mapping[str, float | str], stop_words: list[str]
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as index:
        # Nobody reads it before it is whole, and a half-written one is removed: no journal beside it.
        index.execute("pragma journal_mode = off")
        index.execute("pragma synchronous = off")
        index.execute("begin")
        for statement in LAYOUT:
            index.execute(statement)
        words = [index_terms(note.text) for note in notes]
        index.executemany("insert into notes values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _rows(notes, words))
        _insert_words(index, "note_words", enumerate((" ".join(its_words) for its_words in words), start=1))
        common = common_words()[: int(settings["common_words"])]
        _insert_words(index, "common_words", enumerate(common, start=1))
        index.executemany("insert into stop_words values (?)", ((word,) for word in stop_words))
        counted = {**settings, "version": prompt.INDEX_VERSION, "notes": len(notes)}
        index.executemany("insert into settings values (?, ?)", counted.items())
        index.execute("commit")


def _rows(notes: Sequence[Note], words: Sequence[Sequence[str]]) -> Iterable[tuple[object, ...]]:
    mean = sum(map(len, words)) / len(words) or 1.0
    for number, (note, its_words) in enumerate(zip(notes, words, strict=True), start=1):
        yield (
            number,
            note.memory_id,
            note.memory_type,
            note.line,
            note.updated_on.isoformat(),
            note.confidence,
            note.rank,
            note.tokens,
            " ".join(note.marks),
            None if note.brief_line is None else shown.mark_of(note.brief_line),
            len(its_words) / mean,
        )


def _insert_words(index: sqlite3.Connection, table: str, rows: Iterable[tuple[int, str]]) -> None:
    index.executemany(f"insert into {table} (rowid, words) values (?, ?)", rows)
    index.execute(f"insert into {table} ({table}) values ('optimize')")
