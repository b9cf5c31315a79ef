"""The launcher finds a Python once, remembers its real path, and is silent if there is none."""

import os
import sys
from pathlib import Path

import pytest

REAL_PYTHON = os.path.realpath(sys.executable)


def put_on_path(client, name, script):
    folder = client.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    return str(folder)


def test_a_shim_is_asked_once_and_its_real_python_remembered(client):
    data, calls = client.folder / "data", client.folder / "calls"
    shim = f'#!/bin/sh\necho called >> {calls}\nexec {sys.executable} "$@"\n'
    path = put_on_path(client, "python3", shim) + ":/usr/bin:/bin"
    payload = client.payload(client.write_transcript())
    for _ in range(3):
        assert client.is_silent(client.launch("stop", payload, PATH=path, CLAUDE_PLUGIN_DATA=str(data)))
    assert len(client.tickets()) == 3
    assert calls.read_text() == "called\n"
    assert (data / "python").read_text() == f"{REAL_PYTHON}\n"


def test_without_a_plugin_folder_it_is_remembered_in_the_home(client):
    path = put_on_path(client, "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n') + ":/usr/bin:/bin"
    client.launch("stop", client.payload(client.write_transcript()), PATH=path)
    assert (client.home / "python").read_text() == f"{REAL_PYTHON}\n"


def test_a_home_that_the_launcher_makes_is_its_owners_alone(client):
    path = put_on_path(client, "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n') + ":/usr/bin:/bin"
    before = os.umask(0o022)
    try:
        client.launch("stop", client.payload(client.write_transcript()), PATH=path)
    finally:
        os.umask(before)
    assert client.home.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("remembered", ["", "/gone/python3", "python3", "/tmp", "rm -rf x; /bin/sh"])
def test_a_memory_that_is_no_program_is_made_again(client, remembered):
    client.home.mkdir()
    (client.home / "python").write_text(remembered + "\n")
    path = put_on_path(client, "python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n') + ":/usr/bin:/bin"
    assert client.is_silent(client.launch("stop", client.payload(client.write_transcript()), PATH=path))
    assert len(client.tickets()) == 1
    assert (client.home / "python").read_text() == f"{REAL_PYTHON}\n"


def test_a_python_that_does_not_start_is_forgotten(client):
    broken = client.folder / "broken"
    broken.write_bytes(b"\x7fELF of another world")
    broken.chmod(0o755)
    client.home.mkdir()
    (client.home / "python").write_text(f"{broken}\n")
    assert client.is_silent(client.launch("stop", client.payload(client.write_transcript())))
    assert not (client.home / "python").exists()


@pytest.mark.skipif(
    any(Path(path).exists() for path in ("/usr/local/bin/python3", "/opt/homebrew/bin/python3")),
    reason="a Python in a fixed place would be found",
)
def test_no_python_is_silence(client):
    # The fixed places are tried as well, so a launcher that names none of them stands in.
    launcher = client.folder / "hooks" / "run.sh"
    launcher.write_text(launcher.read_text().replace(" /usr/bin/python3 ", " "))
    folder = client.folder / "bin"
    folder.mkdir()
    for tool in ("uname", "mkdir", "mv", "rm"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    ran = client.launch("stop", client.payload(client.write_transcript()), PATH=str(folder))
    assert client.is_silent(ran)
    assert client.tickets() == [] and not client.home.exists()


def test_too_old_a_python_is_passed_over(client):
    path = put_on_path(client, "python3", "#!/bin/sh\nexit 1\n")
    put_on_path(client, "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    client.launch("stop", client.payload(client.write_transcript()), PATH=f"{path}:/usr/bin:/bin")
    assert (client.home / "python").read_text() == f"{REAL_PYTHON}\n"


def test_sessions_that_cortex_started_are_not_captured(client):
    payload = client.payload(client.write_transcript())
    assert client.is_silent(client.launch("stop", payload, CORTEX_INTERNAL="1"))
    assert client.is_silent(client.hook("stop", payload, CORTEX_INTERNAL="1"))
    assert not client.home.exists()


def test_hostile_environment_does_not_reach_the_hook(client):
    spoiled = client.folder / "spoiled"
    spoiled.mkdir()
    (spoiled / "json.py").write_text("print('not json')")
    payload = client.payload(client.write_transcript())
    ran = client.launch("stop", payload, PYTHONPATH=str(spoiled), PYTHONVERBOSE="1", PYTHONHOME="/nowhere")
    assert client.is_silent(ran)
    assert len(client.tickets()) == 1


def test_a_home_with_a_space_and_quotes_works(client):
    home = client.folder / 'Ada\'s "store" $HOME'
    client.launch("stop", client.payload(client.write_transcript()), CORTEX_HOME=str(home))
    assert len(list((home / "staging" / "new").iterdir())) == 1
