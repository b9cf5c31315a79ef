"""The background run: started by an event, one at a time, at low priority, gone when done (spec 4.6)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.hooks.test_background import ended, install, mark, runs, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are told apart by /proc")


def are_one_after_another(client):
    """Whether each run of the log has ended before the next one started."""
    told = (client.home / "runs" / "background.log").read_text()
    words = re.findall(r"^\d{8}T\d+Z (start|end)", told, re.MULTILINE)
    return words == ["start", "end"] * (len(words) // 2)


def test_fifty_sessions_that_end_at_once_are_one_run_at_a_time_and_none_is_left(client):
    install(client, seconds=0.2)
    payload = client.payload(client.write_transcript())
    command = ["/bin/sh", str(client.folder / "hooks" / "run.sh"), "session-end"]
    env = {"HOME": str(client.folder), "CORTEX_HOME": str(client.home), "PATH": "/usr/bin:/bin"}
    ending = [subprocess.Popen(command, env=env, stdin=subprocess.PIPE) for _ in range(50)]
    for process in ending:
        process.stdin.write(payload)
        process.stdin.close()
    assert [process.wait() for process in ending] == [0] * 50
    wait_until(lambda: ended(client))
    assert not (client.folder / "overlap").exists() and are_one_after_another(client)
    assert 1 <= len(runs(client)) <= 25
    assert client.tickets() == [] and client.log == ""


def test_fifty_ends_with_the_real_engine_are_one_run_at_a_time_and_lose_nothing(client):
    engine = Path(sys.executable).absolute().with_name("cortex")
    if not engine.is_file():
        pytest.skip("no `cortex` command is installed beside this Python")
    install(client)
    (client.home / "engine").write_text(f"{engine}\n")
    said = {"type": "user", "timestamp": "2026-11-20T10:00:00Z", "cwd": "/home/ada/kiln"}
    env = {"HOME": str(client.folder), "CORTEX_HOME": str(client.home), "PATH": "/usr/bin:/bin"}
    ending = []
    for number in range(50):
        text = f"We decided on glaze number {number} because it does not run."
        line = {**said, "uuid": f"u{number}", "message": {"role": "user", "content": text}}
        transcript = client.write_transcript(f"s{number}", json.dumps(line) + "\n")
        command = ["/bin/sh", str(client.folder / "hooks" / "run.sh"), "session-end"]
        process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE)
        process.stdin.write(client.payload(transcript, session_id=f"s{number}"))
        process.stdin.close()
        ending.append(process)
    assert [process.wait() for process in ending] == [0] * 50
    wait_until(lambda: ended(client), seconds=120)
    assert are_one_after_another(client) and client.tickets() == [] and mark(client)["exit_code"] == 0
    asked = [str(engine), "sql", "select count(distinct session_id) from turns", "--json"]
    told = subprocess.run(asked, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    assert json.loads(told)["rows"] == [[50]]
