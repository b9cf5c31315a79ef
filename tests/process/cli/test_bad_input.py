"""Bad input and bad places: a clear error or a set-aside with its reason, its exit code, nothing lost."""

import json
from pathlib import Path

import pytest

from tests.bench import Bench
from tests.transcripts import decisions


def reasons(answer):
    return [(Path(line["file"]).name, line["line"], line["reason"]) for line in answer.json["set_aside"]]


def backfill(cortex, *paths):
    return cortex("backfill", *paths, "--engine", "plain", "--json")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "transcripts"
    path.mkdir()
    return path


@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 40, "not a transcript: binary"),
        (b"# Title\n\nSome words.\n\nMore words.\n", "not a transcript: not JSON"),
        (b"[1, 2]\n[3]\n", "not a transcript: not an object"),
        (b'{"type":"user","message":{"role":"us', "not a transcript: last line is not finished yet"),
    ],
)
def test_a_file_that_is_no_transcript_is_set_aside_with_its_reason(cortex, folder, home, content, reason):
    path = folder / "s1.jsonl"
    path.write_bytes(content)
    answer = backfill(cortex, path)
    assert (answer.code, answer.json["error"]["code"]) == (13, "CORTEX_E_NOTHING_USABLE")
    assert reasons(answer) == [("s1.jsonl", None, reason)]
    assert answer.json["transcripts"] == 0
    kept = json.loads(next((home / "staging" / "set_aside").glob("*.reason")).read_text())
    assert (kept["file"], kept["reason"]) == (str(path), reason)
    links = list((home / "staging" / "transcripts").iterdir())
    assert len(links) == (reason == "empty file" or "not finished" in reason), "of no other file a link stays"
    told = cortex("backfill", path, "--engine", "plain")
    assert told.code == 13 and "Quarantined: 1" in told.out and "[CORTEX_E_NOTHING_USABLE]" in told.err


def test_a_folder_without_transcripts_is_an_error_with_a_next_step(cortex, folder, home):
    (folder / "notes.txt").write_text("words")
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["error"]["code"]) == (13, "CORTEX_E_NOTHING_USABLE")
    assert str(folder) in answer.json["error"]["problem"] and not home.exists()


def test_a_path_that_is_not_there_is_an_error_with_a_next_step(cortex, folder):
    answer = backfill(cortex, folder / "missing")
    assert (answer.code, answer.json["error"]["code"]) == (5, "CORTEX_E_NOT_FOUND")


def test_a_transcript_that_is_gone_with_its_link_is_set_aside(cortex, folder, home):
    bench = Bench(home, folder)
    path = decisions().write(folder)
    bench.stage()
    path.unlink()
    next((home / "staging" / "transcripts").iterdir()).unlink()
    answer = cortex("run", "--engine", "plain", "--json")
    assert (answer.code, reasons(answer)) == (0, [(path.name, None, "transcript is gone")])


WRITES = (["remember", "Use pnpm"], ["run", "--engine", "plain"], ["nightly", "--engine", "plain"])


@pytest.mark.parametrize("command", WRITES)
def test_a_home_below_a_file_says_it_cannot_be_written(cortex, tmp_path, monkeypatch, command):
    (tmp_path / "file").write_text("words")
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "file" / "home"))
    answer = cortex(*command, "--json")
    error = answer.json["error"]
    assert (answer.code, error["code"], error["retryable"]) == (11, "CORTEX_E_STORE_NOT_WRITABLE", True)
    assert "CORTEX_HOME" in error["next_step"]


def test_backfill_to_a_home_below_a_file_says_it_cannot_be_written(cortex, folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("words")
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "file" / "home"))
    decisions().write(folder)
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["error"]["code"]) == (11, "CORTEX_E_STORE_NOT_WRITABLE")


@pytest.mark.parametrize("command", [["status"], ["recall", "x"], ["brief"], ["sql", "select 1"], ["doctor"]])
def test_reading_from_a_home_below_a_file_is_no_crash(cortex, tmp_path, monkeypatch, command):
    (tmp_path / "file").write_text("words")
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "file" / "home"))
    assert cortex(*command, "--json").code in (0, 1, 5, 11)


def test_a_line_beyond_the_limit_that_is_not_finished_is_not_taken_for_read(tmp_path, monkeypatch):
    from cortex.storage.staging.transcripts import open_transcript

    def pieces():
        with open_transcript(path) as transcript:
            return list(transcript.pieces(piece_bytes=10))

    path = tmp_path / "t.jsonl"
    path.write_bytes(b"{}\n" + b"x" * 50)
    [first, cut] = pieces()
    assert (first.data, cut.overlong, cut.start, cut.is_last) == (b"{}\n", "line too long", 3, True)
    path.write_bytes(b"{}\n" + b"x" * 50 + b"\n{}\n")
    rows = [(p.data, p.overlong, p.start, p.first_line) for p in pieces()]
    assert rows == [(b"{}\n", "", 0, 1), (b"", "line too long", 54, 2), (b"{}\n", "", 54, 3)]
