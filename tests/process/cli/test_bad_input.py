"""Bad input and bad places: a clear error or a set-aside with its reason, its exit code, nothing lost."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from tests.bench import Bench, contents, difference, leftovers
from tests.transcripts import Talk, decisions, lines

ROOT = Path(__file__).parents[3]


def reasons(answer):
    return [(Path(line["file"]).name, line["line"], line["reason"]) for line in answer.json["set_aside"]]


def backfill(cortex, *paths):
    return cortex("backfill", *paths, "--engine", "plain", "--json")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "transcripts"
    path.mkdir()
    return path


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[object]:
    """Return a function that mounts a small file system; skip where that is not allowed."""
    mounted: list[Path] = []

    def small(name: str, *options: str) -> Path:
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(path)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("mounting a small file system needs rights that this user does not have")
        mounted.append(path)
        return path

    yield small
    for path in mounted:
        subprocess.run(["umount", "--lazy", str(path)], check=False, capture_output=True)


def remount(path: Path, *options: str) -> None:
    subprocess.run(["mount", "-o", ",".join(("remount", *options)), str(path)], check=True)


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
    told = cortex("backfill", path, "--engine", "plain")
    assert told.code == 13 and "Quarantined: 1" in told.out and "[CORTEX_E_NOTHING_USABLE]" in told.err


@pytest.mark.slow
def test_bad_files_do_not_keep_good_ones_back(cortex, folder):
    decisions().write(folder)
    (folder / "empty.jsonl").touch()
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["transcripts"]) == (0, 1)
    assert reasons(answer) == [("empty.jsonl", None, "empty file")]


def test_a_folder_without_transcripts_is_an_error_with_a_next_step(cortex, folder, home):
    (folder / "notes.txt").write_text("words")
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["error"]["code"]) == (13, "CORTEX_E_NOTHING_USABLE")
    assert str(folder) in answer.json["error"]["problem"] and not home.exists()


def test_a_path_that_is_not_there_is_an_error_with_a_next_step(cortex, folder):
    answer = backfill(cortex, folder / "missing")
    assert (answer.code, answer.json["error"]["code"]) == (5, "CORTEX_E_NOT_FOUND")


@pytest.mark.slow
def test_a_dangling_link_is_named_and_the_rest_goes_on(cortex, folder):
    decisions().write(folder)
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["transcripts"]) == (0, 1)
    assert reasons(answer) == [("gone.jsonl", None, "gone, or not to be read")]


@pytest.mark.slow
def test_a_file_cut_within_a_line_is_read_on_once_the_line_is_whole(cortex, folder, home, tmp_path):
    talk = decisions()
    path = talk.path_in(folder)
    path.parent.mkdir()
    whole = lines(talk.records)
    path.write_bytes(whole[:-200])
    first = backfill(cortex, folder)
    assert (first.code, first.json["transcripts"]) == (0, 1)
    assert reasons(first) == [(path.name, len(talk.records), "last line is not finished yet")]
    path.write_bytes(whole)
    second = backfill(cortex, folder)
    assert (second.json["transcripts"], second.json["set_aside"]) == (1, [])
    at_once = Bench(tmp_path / "other-home", folder)
    at_once.backfill()
    assert difference(contents(home), contents(at_once.home)) == {}


@pytest.mark.slow
def test_a_file_of_one_unfinished_line_is_read_once_it_is_whole(cortex, folder, home):
    path = folder / "s1.jsonl"
    whole = lines(Talk().user("[MEMORY: decision] Levels are whole millimetres.").records)
    path.write_bytes(whole[:90])
    assert backfill(cortex, folder).code == 13
    path.write_bytes(whole)
    assert backfill(cortex, folder).json["rows"]["turns"] == 1
    assert leftovers(home) == [] and list((home / "staging" / "set_aside").iterdir()) == []


@pytest.mark.slow
def test_a_transcript_that_says_nothing_yet_gets_its_project_from_what_follows(cortex, folder):
    path = folder / "s1.jsonl"
    path.write_bytes(b'{"type":"mode","mode":"normal","sessionId":"s1"}\n')
    assert backfill(cortex, folder).code == 0
    with path.open("ab") as file:
        file.write(lines(decisions().records))
    backfill(cortex, folder)
    assert [project["name"] for project in cortex("status", "--json").json["projects"]] == ["kelp"]


@pytest.mark.slow
def test_a_transcript_deleted_between_staging_and_run_is_read_through_its_link(cortex, folder, home):
    bench = Bench(home, folder)
    path = decisions().write(folder)
    bench.stage()
    path.unlink()
    answer = cortex("run", "--engine", "plain", "--json")
    assert (answer.code, answer.json["transcripts"], answer.json["set_aside"]) == (0, 1, [])


def test_a_transcript_that_is_gone_with_its_link_is_set_aside(cortex, folder, home):
    bench = Bench(home, folder)
    path = decisions().write(folder)
    bench.stage()
    path.unlink()
    next((home / "staging" / "transcripts").iterdir()).unlink()
    answer = cortex("run", "--engine", "plain", "--json")
    assert (answer.code, reasons(answer)) == (0, [(path.name, None, "transcript is gone")])


@pytest.mark.slow
@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    "name", ["caf\udce9.jsonl", 'it\'s "quoted" and spaced.jsonl', "zeile\nzwei.jsonl", "日本.jsonl"]
)
def test_any_file_name_is_read(cortex, folder, home, name):
    inside = folder / "o'brien's \"work\""
    inside.mkdir()
    (inside / name).write_bytes(lines(decisions().records))
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["transcripts"], answer.json["set_aside"]) == (0, 1, [])
    assert backfill(cortex, folder).json["transcripts"] == 0
    assert leftovers(home) == []
    [found, *_] = cortex("recall", "millimetres", "--all-projects", "--json").json["results"]
    told = found["evidence"][0]["file"]
    assert told == os.fsencode(inside / name).decode("utf-8", "backslashreplace")


@pytest.mark.slow
def test_a_home_with_spaces_and_quotes_works(cortex, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / 'my "own" cortex\'s home'))
    decisions().write(folder)
    assert backfill(cortex, folder).code == 0
    assert cortex("sql", "select count(*) from turns", "--json").json["rows"] == [[7]]
    assert cortex("recall", "millimetres", "--all-projects").code == 0


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


@pytest.mark.slow
def test_a_read_only_home_refuses_writing_and_still_answers(cortex, folder, mount, monkeypatch):
    home = mount("small", "size=64m")
    monkeypatch.setenv("CORTEX_HOME", str(home))
    talk = decisions()
    talk.write(folder)
    assert backfill(cortex, folder).code == 0
    remount(home, "ro")
    talk.assistant("[MEMORY: gotcha] The pump stops at low tide.").write(folder)
    for command in (*WRITES, ["backfill", folder, "--engine", "plain"]):
        answer = cortex(*command, "--json")
        assert (answer.code, answer.json["error"]["code"]) == (11, "CORTEX_E_STORE_NOT_WRITABLE"), command
    found = cortex("recall", "millimetres", "--all-projects", "--json")
    assert found.code == 0 and found.json["results"]
    assert cortex("status").code == cortex("sql", "select 1").code == 0


SLOW_ROOM_KB = [pytest.param(kb, marks=pytest.mark.slow) for kb in (16, 72, 200, 300)]


@pytest.mark.slow
@pytest.mark.parametrize("room_kb", [4, 40, 120, 400, *SLOW_ROOM_KB])
def test_a_full_disk_loses_nothing_and_the_next_run_goes_on(
    cortex, folder, mount, monkeypatch, tmp_path, room_kb
):
    for number in range(3):
        decisions(f"s{number}").write(folder)
    home = mount("small", f"size={room_kb}k")
    monkeypatch.setenv("CORTEX_HOME", str(home))
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["error"]["code"]) == (11, "CORTEX_E_STORE_NOT_WRITABLE")
    assert "space" in answer.json["error"]["problem"] + answer.json["error"]["next_step"]
    remount(home, "size=64m")
    assert backfill(cortex, folder).code == 0
    undisturbed = Bench(tmp_path / "other-home", folder)
    undisturbed.backfill()
    assert difference(contents(home), contents(undisturbed.home)) == {}
    assert leftovers(home) == []


@pytest.mark.slow
@pytest.mark.first_is_quick
@pytest.mark.parametrize("number", [1, 2, 4])
def test_no_space_for_a_lake_file_leaves_the_store_as_it_was(cortex, folder, home, monkeypatch, number):
    decisions("s1").write(folder)
    backfill(cortex, folder)
    before = contents(home)
    decisions("s2").write(folder)
    write, calls = parquet.write_table, 0

    def full(*args, **options):
        nonlocal calls
        calls += 1
        if calls == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", full)
        answer = backfill(cortex, folder)
    assert (answer.code, answer.json["error"]["code"]) == (11, "CORTEX_E_STORE_NOT_WRITABLE")
    if number < 3:
        assert difference(contents(home), before) == {}
    assert backfill(cortex, folder).code == 0
    assert any("s2" in row["text"] for row in contents(home)["turns"])


@pytest.mark.slow
def test_a_line_of_200_mb_is_passed_over_within_a_gigabyte(tmp_path, folder):
    talk = decisions()
    path = talk.write(folder)
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b'{"type":"user","message":{"role":"user","content":"')
        for _ in range(200):  # real bytes: a file of holes is not a transcript
            file.write(b"x" * 1_000_000)
        file.write(b'"}}\n')
        file.write(lines(Talk("late").user("[MEMORY: decision] What comes after is read.").records))
    program = (
        "import resource, sys\n"
        "from cortex.cli.main import main\n"
        "try:\n    main(['backfill', sys.argv[1], '--engine', 'plain', '--json'])\n"
        "finally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    environment = {**os.environ, "CORTEX_HOME": str(tmp_path / "home")}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    report = json.loads(ran.stdout)
    assert [(line["line"], line["reason"]) for line in report["set_aside"]] == [
        (len(talk.records) + 1, "line too long")
    ]
    assert report["rows"]["turns"] == len(talk.records) + 1
    peak_kb = int(ran.stderr.splitlines()[-1])
    assert peak_kb < 1_000_000


def test_a_line_beyond_the_limit_that_is_not_finished_is_not_taken_for_read(tmp_path, monkeypatch):
    from cortex.storage.transcripts import open_transcript

    def pieces():
        with open_transcript(path) as transcript:
            return list(transcript.pieces(piece_bytes=10))

    path = tmp_path / "t.jsonl"
    path.write_bytes(b"{}\n" + b"x" * 50)
    [first, cut] = pieces()
    assert (first.data, cut.overlong, cut.start, cut.is_last) == (b"{}\n", True, 3, True)
    path.write_bytes(b"{}\n" + b"x" * 50 + b"\n{}\n")
    rows = [(p.data, p.overlong, p.start, p.first_line) for p in pieces()]
    assert rows == [(b"{}\n", False, 0, 1), (b"", True, 54, 2), (b"{}\n", False, 54, 3)]
