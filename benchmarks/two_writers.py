"""
Machines that write to one bucket at once: `python -m benchmarks.two_writers`.

Options: `--seconds 60 --machines 2 --kills 0`.
Each machine is a process with a copy of its own, which writes a session, stages it and runs, again and again;
a run that finds the store busy is repeated. The bucket is moto's, on this machine. With `--kills`, that many
times a machine is killed wherever it is and started again. At the end every machine runs once more. Counted
are sessions that are missing or there twice, runs refused wrongly (a lease lost that nobody had a right to),
copies that differ, and objects that nothing names.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.filesystem.place import remote_note
from cortex.storage.remote.bucket import BucketLog, bucket_at
from cortex.storage.remote.commit_log import last_entry
from cortex.storage.remote.file_tree import parse_tree
from cortex.storage.remote.store_copy import refresh
from cortex.storage.settings.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import LeaseLost, StoreBusy
from cortex.transforms.schemas import TURNS, values

BUCKET = "cortex-two-writers"
URI = f"s3://{BUCKET}/team"
NAMES = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_REGION": "us-east-1"}


@contextmanager
def served_bucket() -> Iterator[dict[str, str]]:
    """Serve an empty bucket on a free port; yield the environment variables that lead to it."""
    import boto3
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    # Moto looks for the object and then writes it, in any number of threads; a service does both in one step.
    put, lock = S3Response.put_object, Lock()

    def put_alone(response: Any) -> Any:
        with lock:
            return put(response)

    S3Response.put_object = put_alone
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        reset = urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")
        urllib.request.urlopen(reset, timeout=30).close()  # what an earlier one of this process left
        client = boto3.client(
            "s3", endpoint_url=endpoint, aws_access_key_id="id", aws_secret_access_key="key"
        )
        client.create_bucket(Bucket=BUCKET)
        yield {**NAMES, "AWS_ENDPOINT_URL": endpoint}
    finally:
        server.stop()
        S3Response.put_object = put


def write_session(folder: Path, name: str, project: str = "/home/dev/kelp") -> Path:
    """Write a session in which a person decides something that only this session says."""
    at = datetime.now(UTC).isoformat()
    text = f"We decided to fire batch {name} in the third kiln, because the second one cracks its glaze."
    record = {
        "type": "user", "uuid": f"u-{name}", "parentUuid": None, "sessionId": name, "timestamp": at,
        "cwd": project, "isSidechain": False, "userType": "external", "version": "2.1.0",
        "message": {"role": "user", "content": text},
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


def work(machine: str, until: float) -> None:
    """Write, stage and run until the instant `until`; print the result of each run as a JSON line."""
    context = Context(load_settings(), lambda settings: None)
    folder = Path.home() / "projects"
    if until:
        number = len(list(folder.glob("*.jsonl")))
        while time.time() < until:
            number += 1
            runs.stage_all(context.settings, [write_session(folder, f"{machine}-{number:05}")])
            print(json.dumps({"outcome": _run(context)}), flush=True)
    while _run(context) != "done":
        time.sleep(0.2)


def _run(context: Context) -> str:
    try:
        runs.execute("ingest", context)
    except LeaseLost:
        return "lease lost"
    except StoreBusy:
        return "busy"
    return "done"


def start(machine: str, until: float, folder: Path, surroundings: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a machine as a process with a home of its own."""
    home = folder / machine
    home.mkdir(exist_ok=True)
    environment = {**os.environ, **surroundings, "HOME": str(home), "CORTEX_HOME": URI}
    command = [sys.executable, "-m", "benchmarks.two_writers", "--machine", machine, "--until", str(until)]
    output = (folder / f"{machine}.jsonl").open("a")
    return subprocess.Popen(command, env=environment, stdout=output, text=True)


def race(folder: Path, seconds: float, machines: int, kills: int, surroundings: Mapping[str, str]) -> int:
    """Let the machines write at once, and be killed; return how many were."""
    names = [f"machine{number}" for number in range(machines)]
    until = time.time() + seconds
    running = {name: start(name, until, folder, surroundings) for name in names}
    chance, killed = random.Random(1), 0
    while time.time() < until and killed < kills:
        time.sleep(chance.uniform(0.2, 2) * seconds / max(kills, 1))
        name = chance.choice(names)
        running[name].send_signal(signal.SIGKILL)
        running[name].wait()
        running[name] = start(name, until, folder, surroundings)
        killed += 1
    for process in running.values():
        process.wait()
    for _ in range(2):  # what waits after a kill, and what came in after a machine's last run
        for name in names:
            start(name, 0, folder, surroundings).wait()
    return killed


def verdict(folder: Path, machines: int, killed: int) -> dict[str, object]:
    """Compare what was written with what the copies and the bucket hold."""
    written = {path.stem for path in folder.glob("*/projects/*.jsonl")}
    outcomes = Counter(
        json.loads(line)["outcome"]
        for path in folder.glob("machine*.jsonl")
        for line in path.read_text().splitlines()
    )
    homes = [next((folder / f"machine{number}" / ".cortex-remote").iterdir()) for number in range(machines)]
    states = []
    lost, doubled = 0, 0
    for home in homes:
        refresh(home)
        store = Store(home)
        store.lake.check_belongs()
        there = Counter(values(store.lake.read(TURNS), "session_id"))
        lost += len(written - set(there))
        doubled += sum(count > 1 for count in there.values())
        states.append((home / "runs" / "manifest.json").read_bytes())
    number, unnamed = _objects_without_name(homes[0])
    return {
        "sessions": len(written), "runs": sum(outcomes.values()), "busy": outcomes["busy"], "killed": killed,
        "entries of the log": number, "lost": lost, "doubled": doubled,
        "refused wrongly": outcomes["lease lost"], "copies that differ": len(set(states)) - 1,
        "objects that nothing names": unnamed,
    }  # fmt: skip


def _objects_without_name(home: Path) -> tuple[int, int]:
    note = remote_note(home)
    assert note is not None
    bucket = bucket_at(note.uri)
    number, entry = last_entry(BucketLog(bucket))
    assert entry is not None
    tree = parse_tree(bucket.read(entry.tree) or b"", entry.tree)
    named = {each.name for each in tree.values()} | {entry.tree}
    return number, sum(not name.startswith("log/") and name not in named for name in bucket.names(""))


def main() -> None:
    """Print the verdict as JSON; exit with 1 where anything was lost, doubled or refused wrongly."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, default in (("seconds", 60.0), ("machines", 2), ("kills", 0), ("until", 0.0)):
        arguments.add_argument(f"--{name}", type=type(default), default=default)
    arguments.add_argument("--machine")
    chosen = arguments.parse_args()
    if chosen.machine:
        work(chosen.machine, chosen.until)
        return
    with served_bucket() as surroundings, tempfile.TemporaryDirectory(prefix="cortex-writers-") as scratch:
        os.environ.update(surroundings)
        killed = race(Path(scratch), chosen.seconds, chosen.machines, chosen.kills, surroundings)
        result = verdict(Path(scratch), chosen.machines, killed)
    print(json.dumps(result, indent=1))
    bad = ("lost", "doubled", "refused wrongly", "copies that differ", "objects that nothing names")
    with suppress(BrokenPipeError):
        sys.exit(any(result[name] for name in bad))


if __name__ == "__main__":
    main()
