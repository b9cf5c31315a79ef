"""Prefect's server ends with the command that started it, whoever ends that, and takes its note along."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Stands in for Prefect: says that it began and waits, as the server does until it is told to end.
SERVER = """
import pathlib, os, sys, time
pathlib.Path(os.environ["BEGUN"]).write_text(str(os.getpid()))
time.sleep(60)
"""
COMMAND = """
import sys
from cortex.cli.main import main
sys.argv = ["cortex", "serve", "--port", "4391"]
main()
"""


def wait_for(path: Path) -> int:
    for _ in range(300):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.1)
    raise AssertionError("the server did not begin")


@pytest.mark.spread(2)
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_server_and_its_note_are_gone_however_the_command_is_ended(tmp_path, ended_by):
    package = tmp_path / "modules" / "prefect"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(SERVER)
    begun, home = tmp_path / "begun", tmp_path / "home"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")},
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]),
        "CORTEX_HOME": str(home),
        "BEGUN": str(begun),
    }
    with subprocess.Popen([sys.executable, "-c", COMMAND], env=environment, cwd=tmp_path) as command:
        server = wait_for(begun)
        command.send_signal(ended_by)
        assert command.wait(30) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
    assert not (home / "runs" / "serve.json").exists()
