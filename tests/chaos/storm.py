"""
A storm of sessions: `python -m tests.chaos.storm --sessions 200`.

Sessions of several clients start, answer and end at once, each event a hook of its own as the client starts
it. A third of the hooks is killed at a random moment, and meanwhile so are the background run and its keeper.
Then the sky clears: one more session starts and one run is made by hand. Afterwards every session must have
been read once, `rebuild --check` must agree, and no process (so no port) and no half-written file be left.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cortex.storage.store import Store
from cortex.transforms.schemas import TURNS
from tests.bench import leftovers
from tests.chaos.harness import unnamed_files
from tests.processes import processes_of
from tests.transcripts import decisions

HOOKS = Path(__file__).parents[2] / "hooks"
CLIENTS = 8
KILLED_SHARE = 1 / 3

# A hook takes about 20 ms, and up to 60 when eight run on two cores.
HOOK_SECONDS = 0.05

# The pauses that spare a user's machine would only make the storm longer.
SHORTENED = {
    "SECONDS_BETWEEN_STARTS = 30": "SECONDS_BETWEEN_STARTS = 0",
    "RETRY_AFTER_SECONDS = 600": "RETRY_AFTER_SECONDS = 1",
}


MUST_BE_NONE = ("missing", "doubled", "differing", "processes", "leftovers")


@dataclass(frozen=True)
class Sky:
    """The scratch user of a storm: a home, a store, transcripts, a bare copy of the hooks, a temp folder."""

    folder: Path
    engine: Path

    @property
    def home(self) -> Path:
        return self.folder / "cortex"

    @property
    def environment(self) -> dict[str, str]:
        places = {"HOME": self.folder, "CORTEX_HOME": self.home, "TMPDIR": self.folder / "tmp"}
        here = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {**{name: str(path) for name, path in places.items()}, "PATH": "/usr/bin:/bin", **here}

    def set_up(self) -> None:
        """Copy the hooks, with shorter pauses, and name the engine."""
        for made in (self.home, self.folder / "tmp"):
            made.mkdir()
        shutil.copytree(HOOKS, self.folder / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
        keeper = self.folder / "hooks" / "background.py"
        text = keeper.read_text()
        for long, short in SHORTENED.items():
            assert long in text, long
            text = text.replace(long, short)
        keeper.write_text(text)
        (self.home / "engine").write_text(f"{self.engine}\n")

    def hook(self, event: str, transcript: Path, kill_after_seconds: float | None = None) -> None:
        """Run one hook as the client does; kill it with all that it started, if told so."""
        payload = {"session_id": transcript.stem, "transcript_path": str(transcript), "cwd": "/home/dev/kelp"}
        begun = subprocess.Popen(
            ["/bin/sh", str(self.folder / "hooks" / "run.sh"), event],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert begun.stdin
        try:
            begun.stdin.write(json.dumps({**payload, "source": "startup"}).encode())
            begun.stdin.close()
        except BrokenPipeError:
            pass
        if kill_after_seconds is not None:
            time.sleep(kill_after_seconds)
            os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()

    def cortex(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command as a person would."""
        command = [str(self.engine), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=600)

    def processes(self) -> set[int]:
        """Return the processes that work on this store."""
        return processes_of(f"CORTEX_HOME={self.home}")


def one_session(sky: Sky, number: int, seed: int) -> int:
    """Start, answer twice and end, a third of the hooks killed; return the number of kills."""
    chance = random.Random(seed)
    talk = decisions(f"s{number}")
    talk.user(f"And buoy {number}?").assistant(
        f"We decided that buoy {number} is checked on foot because it leans."
    )
    path, kills = talk.path_in(sky.folder / "projects"), 0
    for event in ("session-start", "stop", "stop", "session-end"):
        if event != "session-start":
            talk.write(sky.folder / "projects")
        is_killed = chance.random() < KILLED_SHARE
        kills += is_killed
        sky.hook(event, path, chance.uniform(0, HOOK_SECONDS) if is_killed else None)
    return kills


def strike_runs(sky: Sky, over: threading.Event, seed: int) -> int:
    """Kill the background run and its keeper now and then; return how many processes."""
    chance, kills = random.Random(seed), 0
    while not over.wait(chance.uniform(0.2, 3)):
        for pid in sky.processes():
            command = Path(f"/proc/{pid}/cmdline")
            try:
                # Hooks have their own executioner, which knows what it killed.
                if b"\0run\0" in command.read_bytes() or Path(f"/proc/{pid}/cwd").readlink() == sky.home:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
            except OSError:
                continue
    return kills


def storm(folder: Path, sessions: int, seed: int, engine: Path) -> dict[str, int]:
    """Let it rage, let it clear; return kills and what is missing, doubled, differing, running, left."""
    sky = Sky(folder, engine)
    sky.set_up()
    first = decisions("s0").write(folder / "projects")
    sky.hook("session-start", first)  # from here on the sweep knows what is new
    sky.hook("stop", first)
    over = threading.Event()
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        strikes = pool.submit(strike_runs, sky, over, seed)
        kills = sum(pool.map(lambda n: one_session(sky, n, seed * 100_000 + n), range(1, sessions)))
        over.set()
    clear_up(sky, first)
    store = Store(sky.home)
    turns = store.lake.read(TURNS)
    listed = turns["turn_id"].to_pylist()
    rebuilt = sky.cortex("rebuild", "--check")
    left = [*leftovers(sky.home), *unnamed_files(sky.home), *map(str, (folder / "tmp").iterdir())]
    print(*left[:10], rebuilt.stdout if rebuilt.returncode else "", sep="\n", end="")
    return {
        "sessions": sessions,
        "hooks_killed": kills,
        "runs_killed": strikes.result(),
        "missing": sessions - len(set(turns["session_id"].to_pylist())),
        "doubled": len(listed) - len(set(listed)),
        "differing": rebuilt.returncode,
        "processes": len(sky.processes()),
        "leftovers": len(left),
    }


def clear_up(sky: Sky, transcript: Path) -> None:
    """Begin one more session, wait for what it starts, and run once by hand, as on any later day."""
    for _ in range(10):  # a sweep takes 50 transcripts at most
        time.sleep(2.1)  # the sweep trusts no clock within 2 s
        sky.hook("session-start", transcript)
    ends = time.monotonic() + 120
    while sky.processes() and time.monotonic() < ends:
        time.sleep(0.2)
    ran = sky.cortex("run", "--engine", "plain")
    assert ran.returncode == 0, ran.stderr


def main() -> None:
    """Print the tally; leave with 1 if anything is missing, doubled, differing or left."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    engine = Path(sys.executable).absolute().with_name("cortex")
    with tempfile.TemporaryDirectory(prefix="cortex-storm-") as scratch:
        tally = storm(Path(scratch), chosen.sessions, chosen.seed, engine)
    print("storm: " + " ".join(f"{name}={count}" for name, count in tally.items()))
    sys.exit(any(tally[name] for name in MUST_BE_NONE))


if __name__ == "__main__":
    main()
