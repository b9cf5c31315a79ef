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
from tests.process.cli.test_bad_input import (
    WRITES,
    backfill,
    folder,  # noqa: F401
    reasons,
)
from tests.transcripts import Talk, decisions, lines

ROOT = Path(__file__).parents[3]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[object]:
    """Return a function that mounts a small file system; skip if that is not allowed."""
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


def test_bad_files_do_not_keep_good_ones_back(cortex, folder):
    decisions().write(folder)
    (folder / "empty.jsonl").touch()
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["transcripts"]) == (0, 1)
    assert reasons(answer) == [("empty.jsonl", None, "empty file")]


def test_a_dangling_link_is_named_and_the_rest_goes_on(cortex, folder):
    decisions().write(folder)
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    answer = backfill(cortex, folder)
    assert (answer.code, answer.json["transcripts"]) == (0, 1)
    assert reasons(answer) == [("gone.jsonl", None, "gone, or not to be read")]


def test_a_file_of_one_unfinished_line_is_read_once_it_is_whole(cortex, folder, home):
    path = folder / "s1.jsonl"
    whole = lines(Talk().user("[MEMORY: decision] Levels are whole millimetres.").records)
    path.write_bytes(whole[:90])
    assert backfill(cortex, folder).code == 13
    path.write_bytes(whole)
    assert backfill(cortex, folder).json["rows"]["turns"] == 1
    assert leftovers(home) == [] and list((home / "staging" / "set_aside").iterdir()) == []


def test_a_transcript_that_says_nothing_yet_gets_its_project_from_what_follows(cortex, folder):
    path = folder / "s1.jsonl"
    path.write_bytes(b'{"type":"mode","mode":"normal","sessionId":"s1"}\n')
    assert backfill(cortex, folder).code == 0
    with path.open("ab") as file:
        file.write(lines(decisions().records))
    backfill(cortex, folder)
    assert [project["name"] for project in cortex("status", "--json").json["projects"]] == ["kelp"]


@pytest.mark.spread(2)
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


def test_a_home_with_spaces_and_quotes_works(cortex, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / 'my "own" cortex\'s home'))
    decisions().write(folder)
    assert backfill(cortex, folder).code == 0
    assert cortex("sql", "select count(*) from turns", "--json").json["rows"] == [[7]]
    assert cortex("recall", "millimetres", "--all-projects").code == 0


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


@pytest.mark.spread(3)
@pytest.mark.parametrize("room_kb", [4, 16, 40, 72, 120, 200, 300, 400])
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


@pytest.mark.spread(2)
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
