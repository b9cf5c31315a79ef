"""Both engines run the same stages; what Prefect starts ends with the run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench import NOW, contents, difference, leftovers
from tests.present import clock_at
from tests.processes import processes_of
from tests.traces import traces
from tests.transcripts import decisions
from tests.whole.flows.test_erasure import CANARY, forget, told_canary
from tests.whole.flows.test_workers import PREFECT

ROOT = Path(__file__).parents[3]

# A process of its own: Prefect's home holds for a process, and another test may have set it.
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
def test_prefect_gives_what_plain_gives_and_leaves_no_process_and_no_word_in_its_own_files(
    bench, other, tmp_path
):
    told_canary().write(bench.projects)
    mark = f"CORTEX_TEST_MARK={tmp_path.name}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(bench.home), str(bench.projects)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**environment, **PREFECT, **dict([mark.split("=")])},
        timeout=300,  # alone it takes 50 s
    )
    assert (ran.returncode, ran.stdout) == (0, "ran prefect\n"), ran.stderr
    give_up = time.monotonic() + 20  # a busy machine ends them late
    while processes_of(mark) and time.monotonic() < give_up:
        time.sleep(0.2)
    assert processes_of(mark) == set()
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []
    assert list((bench.home / "runs" / "prefect").rglob("*.db")), "Prefect kept nothing to look through"
    places = traces(bench.home, CANARY)
    assert [place for place in places if place.startswith("runs")] == [], "Prefect's own files hold the fact"
    with clock_at(NOW):
        forget(bench)
    assert places and traces(bench.home, CANARY) == [], "what was forgotten is still there"


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
