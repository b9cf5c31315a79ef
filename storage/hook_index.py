"""The index that the prompt hook reads: a SQLite file for each project, written beside and renamed."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
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
    " updated_on text, tokens integer, marks text,"
    " brief_mark integer, length real)",
    f"create virtual table note_words using {WORDS}",
    f"create virtual table common_words using {WORDS}",
)


@dataclass(frozen=True)
class IndexBasis:
    """What a hook index is made from: a fingerprint of the notes' words, the mark of each brief line."""

    words: str
    brief_marks: Mapping[str, int]


def write_hook_index(
    path: Path,
    notes: Sequence[Note] | Callable[[], Sequence[Note]],
    settings: Mapping[str, float | str],
    stop_words: Iterable[str],
    basis: IndexBasis | None = None,
) -> bool:
    """
    Make the index at `path` hold these notes; return whether it did not already. Without notes it is removed.

    With `basis` the notes are asked for only where their words may have changed. The index is made beside
    the old one and renamed: no page of it remembers what was forgotten, and a hook that reads the old one
    goes on.
    """
    stop = list(stop_words)
    state = basis or fingerprint_of(list(notes() if callable(notes) else notes), settings, stop)
    before = fingerprint_in(path)
    if before == state:
        return False
    if before is not None and before.words == state.words:
        with _beside(path) as part:
            shutil.copyfile(path, part)
            _mark_brief_lines(part, state)
        return True
    rows = notes() if callable(notes) else notes
    if not rows:
        existed = path.exists()
        path.unlink(missing_ok=True)
        return existed
    path.parent.mkdir(parents=True, exist_ok=True)
    with _beside(path) as part:
        _write(part, rows, settings, stop)
        _mark_brief_lines(part, state)
    return True


def basis_of(
    words: str, brief_lines: Mapping[str, str], settings: Mapping[str, float | str], stop_words: list[str]
) -> IndexBasis:
    """Return the fingerprints of an index by one of its notes' words and the lines that the brief has too."""
    version, numbers = str(prompt.INDEX_VERSION), json.dumps(dict(settings), sort_keys=True)
    marks = {name: shown.mark_of(line) for name, line in sorted(brief_lines.items())}
    return IndexBasis(content_id(version, numbers, *stop_words, words), marks)


def fingerprint_of(
    notes: Sequence[Note], settings: Mapping[str, float | str], stop_words: list[str]
) -> IndexBasis:
    """Return what represents in an index all that it is made from."""
    rows = [json.dumps(astuple(replace(note, brief_line=None)), default=str) for note in notes]
    lines = {note.memory_id: note.brief_line for note in notes if note.brief_line is not None}
    return basis_of(content_id(*rows), lines, settings, stop_words)


def fingerprint_in(path: Path) -> IndexBasis | None:
    """Return what the index at `path` was made from; None where there is none that can be read."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as index:
            asked = "select value from settings where name = ?"
            row = index.execute(asked, ("made_from",)).fetchone()
            marks = index.execute(asked, ("brief_marks",)).fetchone()
        return IndexBasis(str(row[0]), json.loads(marks[0])) if row and marks else None
    except (sqlite3.Error, TypeError, ValueError):
        return None


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a file for the owner alone that takes the place of `path`."""
    with replacing(path) as part:
        os.close(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        yield part


def _mark_brief_lines(path: Path, state: IndexBasis) -> None:
    """Note in an index which notes the brief has too, and what it is made from."""
    with closing(sqlite3.connect(path, isolation_level=None)) as index:
        index.execute("pragma journal_mode = off")
        index.execute("pragma synchronous = off")
        index.execute("begin")
        index.execute("update notes set brief_mark = null where brief_mark is not null")
        index.executemany(
            "update notes set brief_mark = ? where memory_id = ?",
            [(mark, name) for name, mark in sorted(state.brief_marks.items())],
        )
        marks = json.dumps(dict(state.brief_marks), sort_keys=True)
        rows = {"made_from": state.words, "brief_marks": marks}
        index.executemany("insert or replace into settings values (?, ?)", rows.items())
        index.execute("commit")


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
        index.executemany("insert into notes values (?, ?, ?, ?, ?, ?, ?, ?, ?)", _rows(notes, words))
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
            note.tokens,
            " ".join(note.marks),
            None,
            len(its_words) / mean,
        )


def _insert_words(index: sqlite3.Connection, table: str, rows: Iterable[tuple[int, str]]) -> None:
    index.executemany(f"insert into {table} (rowid, words) values (?, ?)", rows)
    index.execute(f"insert into {table} ({table}) values ('optimize')")
