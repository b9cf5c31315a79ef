"""The hook index is whole, its owner's alone, written only when it changes, and remembers nothing."""

import sqlite3
import stat
from datetime import date
from pathlib import Path

import pytest

from cortex.hooks import prompt
from cortex.hooks.terms import index_terms
from cortex.storage import hook_index
from cortex.storage.hook_index import write_hook_index
from cortex.storage.reference import read_policy
from cortex.transforms.brief.hook_index import Note, settings_of, stop_words_of

POLICY = read_policy(None)
SETTINGS, STOP_WORDS = settings_of(POLICY), stop_words_of(POLICY)
CANARY = "quagsireplum"


def note(name: str, text: str) -> Note:
    return Note(name, "decision", f"- decision: {text}", text, date(2026, 9, 14), 20, (), None)


def write(path: Path, *notes: Note) -> bool:
    return write_hook_index(path, notes, SETTINGS, STOP_WORDS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "published" / "reef-1" / prompt.INDEX


def test_only_its_owner_reads_it_and_nothing_lies_beside_it(path: Path):
    assert write(path, note("a", "Keep readings in UTC."))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == [prompt.INDEX]


def test_the_same_notes_are_not_written_again(path: Path):
    write(path, note("a", "Keep readings in UTC."))
    before = path.stat()
    assert not write(path, note("a", "Keep readings in UTC."))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert write(path, note("a", "Keep readings in local time."))


def test_other_numbers_of_the_gate_write_it_again(path: Path):
    write(path, note("a", "Keep readings in UTC."))
    assert write_hook_index(
        path, [note("a", "Keep readings in UTC.")], {**SETTINGS, "least_score": 9}, STOP_WORDS
    )


def test_equal_notes_make_equal_bytes(path: Path, tmp_path: Path):
    write(path, note("a", "Keep readings in UTC."), note("b", "Poll each minute."))
    write(tmp_path / "again", note("a", "Keep readings in UTC."), note("b", "Poll each minute."))
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_without_notes_there_is_no_index(path: Path):
    assert not write(path)
    write(path, note("a", "Keep readings in UTC."))
    assert write(path) and not path.exists()


def test_what_is_gone_leaves_no_byte(path: Path):
    write(path, *(note(str(n), f"The {CANARY}{n} reef keeps UTC.") for n in range(200)))
    assert CANARY.encode() in path.read_bytes()
    write(path, note("a", "Keep readings in UTC."))
    assert CANARY.encode() not in path.read_bytes()


def test_a_damaged_index_is_made_again(path: Path):
    write(path, note("a", "Keep readings in UTC."))
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    assert write(path, note("a", "Keep readings in UTC."))
    assert prompt.search(str(path), "readings in UTC")[0]["notes"] == 1


def test_a_reader_of_the_old_index_goes_on(path: Path):
    write(path, note("a", "Keep readings in UTC."))
    reader = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    reader.execute("select 1 from notes").fetchall()
    write(path, note("b", "Poll each minute."))
    assert reader.execute("select memory_id from notes").fetchall() == [("a",)]
    reader.close()


def test_a_writer_that_fails_leaves_the_old_one_whole(path: Path, monkeypatch: pytest.MonkeyPatch):
    write(path, note("a", "Keep readings in UTC."))
    before = path.read_bytes()

    def fails() -> tuple[str, ...]:
        raise OSError("no space left")

    monkeypatch.setattr(hook_index, "common_words", fails)
    with pytest.raises(OSError, match="no space left"):
        write(path, note("b", "Poll each minute."))
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == [prompt.INDEX]


@pytest.mark.parametrize(
    "asked", ["loadConfig", "load config", "app_state.py", "src/clock/app_state.py", "STATIONS", "Überläufe"]
)
def test_what_is_written_is_found_by_the_same_cut(path: Path, asked: str):
    write(
        path,
        note("a", "loadConfig reads src/clock/app_state.py for each station at Überläufe"),
        note("b", "Tea."),
    )
    with sqlite3.connect(path) as index:
        for word in index_terms(asked):
            query = "select rowid from note_words where note_words match ?"
            assert index.execute(query, (f'"{word}"',)).fetchall() == [(1,)], word
