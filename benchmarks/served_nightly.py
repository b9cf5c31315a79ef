"""
A nightly run that a Prefect server on PostgreSQL starts: `python -m benchmarks.served_nightly`.

A scratch PostgreSQL (its programs on the PATH or in Debian's place), `cortex serve --cron "* * * * *"` on it
over a scratch store with the sample sessions staged, and nothing else: what runs was started by the schedule.
Printed as JSON: the flow run as the server has it, its tasks and artifacts, the store's own report, and what
is left running at the end.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cortex.flows.engines.runs import look_for, stage_all
from cortex.storage.published.reports import last_report
from cortex.storage.settings.settings import Settings

SAMPLES = Path(__file__).parents[1] / "data" / "samples"
DEBIAN = Path("/usr/lib/postgresql")

# Starting server, schedule and run took four minutes on two busy cores.
WAIT_SECONDS = 420


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL of its own below `folder`; yield the address for Prefect."""
    port = free_port()
    # It refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")
    data = folder / "data"
    subprocess.run(
        [*user, program("initdb"), "-D", str(data), "-U", "cortex", "-A", "trust"], check=True, **quiet()
    )
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    control = [*user, program("pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    subprocess.run([*control, "-o", options, "start"], check=True, **quiet())
    try:
        yield f"postgresql+asyncpg://cortex@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], check=True, **quiet())


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL's."""
    places = sorted(DEBIAN.glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or str(places[0])


def quiet() -> dict[str, Any]:
    """Return the options of a process whose output nobody reads."""
    return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}


def free_port() -> int:
    """Return a port of this machine that nothing listens at."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def ask(api: str, path: str, body: Mapping[str, object]) -> Any:
    """Return what the server answers."""
    request = urllib.request.Request(
        f"{api}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def finished_run(api: str, deadline: float) -> dict[str, Any]:
    """Wait for a nightly run that ended; return it as the server tells it."""
    wanted = {"flows": {"name": {"any_": ["cortex-nightly"]}}, "sort": "START_TIME_ASC"}
    while time.monotonic() < deadline:
        time.sleep(2)
        try:
            ended = [run for run in ask(api, "/flow_runs/filter", wanted) if run["end_time"]]
        except OSError:  # it has not started yet
            continue
        if ended:
            first: dict[str, Any] = ended[0]
            return first
    raise TimeoutError("no nightly run ended")


def seen(folder: Path, database: str) -> dict[str, object]:
    """Serve until a nightly run was started by the schedule and ended; return what was seen."""
    home, port = folder / "home", free_port()
    settings, api = Settings(home=home), f"http://127.0.0.1:{port}/api"
    stage_all(settings, look_for(settings, [SAMPLES]).transcripts)
    surroundings = {
        **os.environ,
        "CORTEX_HOME": str(home),
        "HOME": str(folder),
        "PREFECT_API_DATABASE_CONNECTION_URL": database,
    }
    command = [sys.executable, "-m", "cortex", "serve", "--port", str(port), "--cron", "* * * * *"]
    with subprocess.Popen(command, env=surroundings) as served:
        try:
            run = finished_run(api, time.monotonic() + WAIT_SECONDS)
            only_it = {"flow_runs": {"id": {"any_": [run["id"]]}}}
            tasks = ask(api, "/task_runs/filter", {**only_it, "limit": 200})
            artifacts = ask(api, "/artifacts/filter", {**only_it, "limit": 50})
            deployments = ask(api, "/deployments/filter", {})
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait(60)
    report = last_report(home / "runs", "nightly") or {}
    time.sleep(3)
    return {
        "database": database.partition("+")[0],
        "deployments": sorted(f"{each['name']} {len(each['schedules'])} schedules" for each in deployments),
        "state": run["state_name"],
        "started by the schedule": run["auto_scheduled"],
        "expected at": run["expected_start_time"],
        "started at": run["start_time"],
        "seconds": round(run["total_run_time"], 1),
        "tasks completed": sum(each["state_name"] == "Completed" for each in tasks),
        "tasks": len(tasks),
        "artifacts": sorted(f"{each['key']} ({each['type']})" for each in artifacts),
        "report": {name: report.get(name) for name in ("flow", "engine", "transcripts")},
        "left running": left_running(str(folder)),
    }


def left_running(mark: str) -> int:
    """Return how many processes still carry `mark` in their environment."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            count += f"HOME={mark}".encode() in (process / "environ").read_bytes()
        except OSError:
            continue
    return count


def main() -> None:
    """Print what was seen."""
    with (
        tempfile.TemporaryDirectory(prefix="cortex-postgresql-") as database,
        tempfile.TemporaryDirectory(prefix="cortex-served-") as scratch,
        postgresql(Path(database)) as url,
    ):
        print(json.dumps(seen(Path(scratch), url), indent=1))


if __name__ == "__main__":
    main()
