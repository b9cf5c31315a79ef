"""The real client: found beside the project or skipped with the reason, driven in a scratch home."""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = Path(__file__).parent / "scenarios"

# Drives the client against a scripted API on loopback; kept beside the project, not in it.
HARNESS = ROOT.parent / "shared" / "tools" / "realclient"

# The part of the repository that is the plugin.
PLUGIN = ROOT / "hooks"

# `cortex` as the tests' own environment has it.
ENGINE = Path(sys.executable).absolute().with_name("cortex")


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Return the harness with a client in its cache; skip, saying why, if there is none."""
    if not (HARNESS / "realclient.py").is_file():
        pytest.skip("the harness that drives the client (shared/tools/realclient) is not beside the project")
    if not ENGINE.is_file():
        pytest.skip("no `cortex` command is installed beside this Python")
    sys.path.insert(0, str(HARNESS))
    realclient = importlib.import_module("realclient")
    _have_client(realclient)
    return realclient


def _have_client(realclient: ModuleType) -> None:
    from filelock import FileLock

    cache: Path = realclient.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "setup.lock"):  # several workers, one download
        if os.environ.get("REALCLIENT_BINARY") or (cache / "current.json").is_file():
            return
        if shutil.which("npm") is None:
            pytest.skip("the client is not in the cache, and there is no npm to fetch it (380 MB)")
        try:
            realclient.setup()
        except (SystemExit, subprocess.TimeoutExpired, OSError, KeyError) as error:
            pytest.skip(f"npm could not fetch the client: {str(error)[:200]}")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a folder that holds the plugin, its time limits raised."""
    folder = tmp_path / "cortex-lake"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("hook.py", "prompt.py"):  # on a busy machine they would rather be silent than late
        path = folder / name
        path.write_text(re.sub(r"(?m)^(MAX_(?:PROMPT_)?SECONDS) = .*$", r"\1 = 5", path.read_text()))
    return folder


def scenario(name: str) -> dict[str, Any]:
    """Return a scenario with this environment's `cortex` in it; the harness fills in the scratch folders."""
    text = (SCENARIOS / f"{name}.json").read_text(encoding="utf-8")
    told = {"{{cortex}}": shlex.quote(str(ENGINE)), "{{engine}}": str(ENGINE), "{{bin}}": str(ENGINE.parent)}
    for mark, value in told.items():
        text = text.replace(mark, json.dumps(value)[1:-1])
    return dict(json.loads(text))


def take_step(realclient: ModuleType, client: Any, step: dict[str, Any]) -> None:
    """Take a step of a scenario: one of ours, or one that the harness knows."""
    if "killed" in step:
        _kill_session(client, step["killed"], on=step["on"])
    elif "at_once" in step:
        sessions = [threading.Thread(target=client.run_print, args=(text,)) for text in step["at_once"]]
        for session in sessions:
            session.start()
        for session in sessions:
            session.join()
    elif "until_idle" in step:
        _wait_until_idle(client, step["until_idle"])
    else:
        realclient.do_step(client, step)


def _kill_session(client: Any, prompt: str, *, on: str) -> None:
    """Begin a session, and end it by SIGKILL once a message of type `on` is printed and in its transcript.

    The client prints a message before it writes it: killed between the two, it leaves nothing to read.
    """
    stream = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    session = subprocess.Popen(
        [client.bin, "-p", *client.common_args(), *stream],
        env=client.env,
        cwd=client.project,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert session.stdin and session.stdout
    message = {"type": "user", "message": {"role": "user", "content": prompt}}
    session.stdin.write(json.dumps(message) + "\n")
    session.stdin.flush()
    seen = any(json.loads(line).get("type") == on for line in session.stdout)
    give_up_at = time.monotonic() + 10
    while not _is_written(client, on) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    session.kill()
    session.communicate()
    assert seen, f"the session ended before a message of type {on}"
    client.steps.append({"mode": "killed", "rc": session.returncode, "messages": []})


def _is_written(client: Any, kind: str) -> bool:
    """Say whether a transcript holds an answer and, after it began, a message of type `kind`."""
    transcripts = (client.home / ".claude" / "projects").glob("*/*.jsonl")
    lines = [line for path in transcripts for line in path.read_text().splitlines(keepends=True)]
    kinds = [json.loads(line)["type"] for line in lines if line.endswith("\n")]
    wanted = kind if kind == "user" else "assistant"  # a result stands in no transcript
    return "assistant" in kinds and wanted in kinds[kinds.index("assistant") :]


def _wait_until_idle(client: Any, seconds: float) -> None:
    """Wait until nothing that the client started is left."""
    give_up_at = time.monotonic() + seconds
    while (left := client.alive()) and time.monotonic() < give_up_at:
        time.sleep(0.1)
    client.steps.append({"mode": "idle", "rc": 1 if left else 0, "left": left})
