"""A store elsewhere has a copy in a folder of its own, which hooks, launchers and engine name alike."""

from pathlib import Path

import pytest

from cortex.hooks.home import copy_of, home_in

URIS = {
    "s3://bucket/team": "s3+bucket+team",
    "s3://bucket/team/kiln//": "s3+bucket+team+kiln",
    "file:///mnt/team": "file+mnt+team",
    "s3://bucket/../../etc": "s3+bucket+..+..+etc",
}


@pytest.mark.parametrize(("uri", "name"), URIS.items())
def test_hooks_keep_what_a_session_leaves_in_the_copy(client, uri, name):
    assert client.is_silent(client.hook("stop", client.payload(client.write_transcript()), CORTEX_HOME=uri))
    copy = client.folder / ".cortex-remote" / name
    assert [path.name for path in copy.parent.iterdir()] == [name]
    assert len(list((copy / "staging" / "new").iterdir())) == 1


@pytest.mark.parametrize(("uri", "name"), URIS.items())
def test_the_launcher_of_the_tools_finds_the_engine_that_the_copy_names(client, uri, name):
    copy = client.folder / ".cortex-remote" / name
    engine = client.folder / "engine"
    engine.write_text('#!/bin/sh\necho "$@"\n')
    engine.chmod(0o755)
    copy.mkdir(parents=True)
    (copy / "engine").write_text(f"{engine}\n")
    ran = client.run(["/bin/sh", str(client.folder / "hooks" / "mcp.sh")], b"", {"CORTEX_HOME": uri})
    assert (ran.returncode, ran.stdout) == (0, b"mcp\n"), ran.stderr


def test_the_launcher_of_hooks_makes_no_folder_of_a_uri(client):
    client.launch("stop", client.payload(client.write_transcript()), CORTEX_HOME="s3://bucket/team")
    assert not (client.folder / "s3:").exists()
    assert (client.folder / ".cortex" / "python").is_file()


def test_a_folder_is_itself(monkeypatch):
    monkeypatch.chdir("/")
    assert home_in({"CORTEX_HOME": "srv/cortex"}) == "/srv/cortex"
    assert home_in({}) == str(Path.home() / ".cortex")
    assert home_in({"CORTEX_HOME": "s3://bucket/team"}) == copy_of("s3://bucket/team")
