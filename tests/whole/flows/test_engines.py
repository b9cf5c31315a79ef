"""Both engines run the same stages; what Prefect starts ends with the run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench import contents, difference, leftovers
from tests.processes import processes_of
from tests.transcripts import decisions

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from pathlib import Path
from tests.bench import Bench

if __name__ == "__main__":
    bench = Bench(Path(sys.argv[1]), Path(sys.argv[2]))
    bench.stage()
    print("ran", bench.run(engine="prefect").engine)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are told apart by /proc")
def test_prefect_gives_what_plain_gives_and_leaves_no_process(bench, other, tmp_path):
    home = bench.home
    decisions().write(bench.projects)
    mark = f"CORTEX_TEST_MARK={tmp_path.name}"
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), str(bench.projects)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **dict([mark.split("=")])},
        timeout=300,  # alone it takes 50 s
    )
    assert (ran.returncode, ran.stdout) == (0, "ran prefect\n"), ran.stderr
    give_up = time.monotonic() + 20  # a busy machine ends them late
    while processes_of(mark) and time.monotonic() < give_up:
        time.sleep(0.2)
    assert processes_of(mark) == set()
    other.backfill()
    assert difference(contents(home), contents(other.home)) == {}
    assert leftovers(home) == []


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
