"""The status line: what it says, and that it says nothing if it has nothing to say."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cortex.hooks.statusline import capture_age, context, line

NOW = 1_800_000_000.0
KILN = "/home/ada/kiln"

# The client's JSON, as its version 2.1 writes it; what the line does not read is left out.
PAYLOAD = {
    "session_id": "0b6f4a52-7d3e-4c1b-9a55-3f1c8e2d7a10",
    "cwd": KILN + "/src",
    "workspace": {"current_dir": KILN + "/src", "project_dir": KILN, "added_dirs": []},
    "context_window": {"context_window_size": 200_000, "used_percentage": 41, "remaining_percentage": 59},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of somebody with memories in two projects and a capture three minutes ago."""
    folder = tmp_path / "cortex"
    (folder / "staging" / "new").mkdir(parents=True)
    os.utime(folder / "staging" / "new", (NOW - 200, NOW - 200))
    (folder / "published").mkdir()
    (folder / "published" / "projects.json").write_text(
        json.dumps({KILN: "kiln-1", "/home/ada/reef": "reef-2"})
    )
    (folder / "published" / "counts.json").write_text(json.dumps({"kiln-1": 42, "reef-2": 1, "global": 7}))
    return folder


def used(percent: object) -> dict[str, object]:
    return {**PAYLOAD, "context_window": {"used_percentage": percent}}


def test_the_context_is_counted_where_the_client_gives_no_percentage(home):
    usage = {"input_tokens": 9, "cache_creation_input_tokens": 1_991, "cache_read_input_tokens": 148_000}
    window = {"context_window_size": 200_000, "used_percentage": None, "current_usage": usage}
    assert context({"context_window": window}, 70) == "context 75 % full, /compact soon"


def test_it_says_memories_last_capture_and_context(home):
    assert line(str(home), PAYLOAD, NOW) == "cortex: 42 memories · captured 3 min ago · context 41 %"


def test_what_is_wrong_comes_first_and_nothing_is_said_of_health_where_all_is_well(home):
    reason = home / "staging" / "set_aside" / "a.reason"
    reason.parent.mkdir()
    reason.write_text("{}")
    os.utime(reason, (NOW, NOW))
    assert line(str(home), PAYLOAD, NOW).startswith("cortex: needs you: cortex doctor · 42 memories")


def test_from_seventy_percent_on_it_warns(home):
    assert context(used(69), 70) == "context 69 %"
    assert context(used(70), 70) == "context 70 % full, /compact soon"
    assert context(used(None), 70) == context({}, 70) == context({"context_window": []}, 70) == ""


def test_another_folder_has_other_memories(home):
    assert line(str(home), {"cwd": "/home/ada/reef"}, NOW).startswith("cortex: 1 memory · ")
    assert line(str(home), {"cwd": "/home/ada/new"}, NOW).startswith("cortex: 0 memories · ")


def test_parts_order_and_threshold_are_chosen_also_for_one_project(home, monkeypatch):
    chosen = {
        "statusline.show": ["context", "memories"],
        "projects": {"kiln-1": {"statusline.warn_percent": 40}},
    }
    (home / "hook_settings.json").write_text(json.dumps(chosen))
    assert line(str(home), PAYLOAD, NOW) == "cortex: context 41 % full, /compact soon · 42 memories"
    assert line(str(home), {**PAYLOAD, "cwd": "/home/ada/reef"}, NOW) == "cortex: context 41 % · 1 memory"
    monkeypatch.setenv("CORTEX_STATUSLINE_SHOW", "memories")
    assert line(str(home), PAYLOAD, NOW) == "cortex: 42 memories"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "captured just now"),
        (59, "captured just now"),
        (60, "captured 1 min ago"),
        (7_300, "captured 2 h ago"),
        (260_000, "captured 3 d ago"),
    ],
)
def test_the_age_of_the_last_capture_is_in_its_largest_unit(home, seconds, told):
    os.utime(home / "staging" / "new", (NOW - seconds, NOW - seconds))
    assert capture_age(str(home), NOW) == told


def test_before_anything_was_captured_it_says_so(tmp_path):
    assert line(str(tmp_path), {"cwd": KILN}, NOW) == "cortex: nothing captured yet"


@pytest.mark.parametrize("damage", ["", "[]", "{", "null", '{"kiln-1": "many"}'])
@pytest.mark.parametrize("name", ["published/counts.json", "hook_settings.json"])
def test_a_damaged_file_costs_its_part_alone(home, name, damage):
    (home / name).write_text(damage)
    rest = "captured 3 min ago · context 41 %"
    assert line(str(home), PAYLOAD, NOW) in (f"cortex: {rest}", f"cortex: 42 memories · {rest}")


def test_through_the_launcher_it_is_one_line(client):
    (client.home / "staging" / "new").mkdir(parents=True)
    ran = client.launch("statusline", json.dumps(PAYLOAD).encode())
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.decode() == "cortex: captured just now · context 41 %\n"


@pytest.mark.parametrize(
    "stdin", [b"", b"{", b"[]", b"null", b'{"cwd": 3, "workspace": 3, "context_window": 3}', b"\xff"]
)
def test_whatever_comes_in_it_ends_with_0_and_no_junk(client, stdin):
    ran = client.launch("statusline", stdin)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout in (b"", b"cortex: nothing captured yet\n")


def test_where_the_output_is_gone_it_ends_with_0(client):
    command = f"sh {client.folder}/hooks/run.sh statusline"
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{command} >&-"],
        input=b"{}",
        capture_output=True,
        timeout=30,
        env={"HOME": str(client.folder), "CORTEX_HOME": str(client.home), "PATH": "/usr/bin:/bin"},
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_it_writes_no_ticket_and_no_log(client):
    client.launch("statusline", json.dumps(PAYLOAD).encode())
    assert sorted(path.name for path in client.home.iterdir()) == ["python"]


def test_the_command_says_the_same(home, monkeypatch, tmp_path):
    monkeypatch.setenv("CORTEX_HOME", str(home))
    os.utime(home / "staging" / "new", (time.time(), time.time()))
    told = subprocess.run(
        [sys.executable, "-m", "cortex", "statusline"],
        input=json.dumps(PAYLOAD),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (told.returncode, told.stdout) == (0, "cortex: 42 memories · captured just now · context 41 %\n")
    silent = subprocess.run(
        [sys.executable, "-m", "cortex", "statusline"], input="{", capture_output=True, text=True, timeout=60
    )
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")


@pytest.mark.parametrize("folder", ["/" + "a/" * 60_000, "/" + "b" * 100_000])
def test_a_folder_longer_than_any_path_is_not_walked(home, folder):
    begun = time.process_time()
    assert "0 memories" in line(str(home), {"cwd": folder, "workspace": {"project_dir": folder}}, NOW)
    assert time.process_time() - begun < 0.5
