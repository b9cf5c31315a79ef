"""Both engines run the same stages; what Prefect starts ends with the run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.flows.conftest import contents, difference, leftovers
from tests.transcripts import decisions

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from pathlib import Path
from tests.flows.conftest import Bench

if __name__ == "__main__":
    bench = Bench(Path(sys.argv[1]), Path(sys.argv[2]))
    bench.stage()
    print("ran", bench.run(engine="prefect").engine)
"""


def processes_of(mark: str) -> set[int]:
    """Return the processes that carry `mark` in their environment: those a run started, and theirs."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.add(int(process.name))
        except OSError:
            continue
    return found


def listening_ports() -> set[str]:
    """Return the local addresses of listening TCP sockets."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in _lines(Path("/proc/net") / name)[1:]]
    return {row[1] for row in rows if row[3] == "0A"}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else ["header"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="processes and ports are looked up in /proc")
def test_prefect_gives_what_plain_gives_and_leaves_no_process_and_no_port(bench, other, tmp_path):
    home = bench.home
    decisions().write(bench.projects)
    mark = f"CORTEX_TEST_MARK={tmp_path.name}"
    before = listening_ports()
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), str(bench.projects)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **dict([mark.split("=")])},
        timeout=120,
    )
    assert (ran.returncode, ran.stdout) == (0, "ran prefect\n"), ran.stderr
    time.sleep(1)
    assert processes_of(mark) == set()
    assert listening_ports() - before == set()
    other.backfill()
    assert difference(contents(home), contents(other.home)) == {}
    assert leftovers(home) == []


@pytest.mark.slow
def test_backfill_under_prefect_prints_json_alone(tmp_path):
    projects = tmp_path / "projects"
    decisions().write(projects)
    ran = subprocess.run(
        [sys.executable, "-m", "cortex", "backfill", str(projects), "--json", "--engine", "prefect"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CORTEX_HOME": str(tmp_path / "home")},
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["engine"], report["transcripts"], report["set_aside"]) == ("prefect", 1, [])
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
def test_an_error_under_prefect_has_its_exit_code(tmp_path):
    home, projects = tmp_path / "home", tmp_path / "projects"
    decisions().write(projects)
    home.mkdir()
    (home / "tables").write_text("a file where a folder should be")
    ran = subprocess.run(
        [sys.executable, "-m", "cortex", "backfill", str(projects), "--json", "--engine", "prefect"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CORTEX_HOME": str(home)},
        timeout=120,
    )
    assert ran.returncode == 11 and "Traceback" not in ran.stderr
    assert json.loads(ran.stdout)["error"]["code"] == "CORTEX_E_STORE_NOT_WRITABLE"
