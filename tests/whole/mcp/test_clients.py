"""The server as a process, and clients of other makers and earlier days: each lists, calls and goes."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.node import node_programs, run_node

ENGINE = Path(sys.executable).absolute().with_name("cortex")
HERE = Path(__file__).parent
TOOLS = ["recall", "query", "reflect", "infer", "learn", "consolidate"]
LESSON = "The mole in pier.py is 40 m long."
# From the start to the first answer, on a busy machine without compiled modules; 1.3 s on an idle one with.
START_SECONDS = 40


@pytest.fixture
def environment(home: Path, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a server on the test's own store."""
    if not ENGINE.is_file():
        pytest.skip("no `cortex` command is installed beside this Python")
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CORTEX_HOME": str(home)}


@pytest.fixture
def server(environment, tmp_path):
    """Return a running server to which lines of JSON are written, and killed at the end if need be."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([ENGINE, "mcp"], env=environment, cwd=tmp_path, text=True, **pipes)
    yield process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def ask(process, method, number=None, **params):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    line = json.dumps(message | ({} if number is None else {"id": number}))
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline()) if number is not None else None


def shake_hands(process):
    told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = ask(process, "initialize", 1, **told)
    ask(process, "notifications/initialized")
    return answer["result"]


def test_the_process_answers_before_it_loads_tables_and_ends_with_its_client(server):
    began = time.monotonic()
    assert shake_hands(server)["serverInfo"]["name"] == "cortex"
    assert time.monotonic() - began < START_SECONDS
    maps = Path(f"/proc/{server.pid}/maps")
    if maps.exists():
        heavy = ("lance", "duckdb", "arrow", "numpy", "polars", "onnxruntime")
        assert [name for name in heavy if name in maps.read_text()] == []
    assert len(ask(server, "tools/list", 2)["result"]["tools"]) == 6
    server.stdin.close()
    assert server.wait(20) == 0


def test_a_client_that_is_gone_in_the_middle_of_a_call_leaves_no_process(server):
    shake_hands(server)
    endless = {"sql": "select count(*) from range(100000000000) a, range(1000) b"}
    message = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "query", "arguments": endless},
    }
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    time.sleep(1)
    server.stdin.close()
    assert server.wait(40) == 0


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "line", ["{", "[]", '{"jsonrpc": "2.0", "id": 5}', "\x00", '"' * 100_000, "{}" * 9_000]
)
def test_what_is_no_message_does_not_end_the_server(server, line):
    shake_hands(server)
    server.stdin.write(line + "\n")
    server.stdin.flush()
    message = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()
    for answer in map(json.loads, server.stdout):
        if answer.get("id") == 9:
            assert len(answer["result"]["tools"]) == 6
            return
    raise AssertionError("the server ended")


def test_the_last_package_of_the_old_era_lists_and_calls(environment, tmp_path):
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed: it fetches mcp 1.28 into an environment of its own")
    words = [
        uv,
        "run",
        "--quiet",
        "--no-project",
        "--python",
        sys.executable,
        "--with",
        "mcp==1.28.*",
        "python",
    ]
    done = subprocess.run(
        [*words, HERE / "old_client.py", ENGINE, json.dumps(environment)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
    )
    if done.returncode and "mcp==1.28" in done.stderr:
        pytest.skip(f"uv could not fetch mcp 1.28: {done.stderr[:200]}")
    report = json.loads(done.stdout.splitlines()[-1]) if done.stdout else done.stderr
    assert report["tools"] == TOOLS and report["text"] == LESSON
    assert (report["prompts"], report["resources"]) == (5, 4)
    assert report["wrong"][0] and "CORTEX_E202" in report["wrong"][1]


def test_the_typescript_package_lists_and_calls(environment, tmp_path):
    modules = node_programs().parent
    script = modules.parent / "sdk_client.mjs"  # modules are looked for beside the script
    shutil.copy(HERE / "sdk_client.mjs", script)
    done = run_node("node", script, ENGINE, json.dumps(environment), cwd=tmp_path)
    assert json.loads(done.stdout or "null") == {"tools": TOOLS, "text": LESSON, "wrong": True}, done.stderr


def test_the_inspector_lists_what_the_snapshot_has(environment, tmp_path):
    listing = {}
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        done = run_node(
            "mcp-inspector", "--cli", ENGINE, "mcp", "--method", method, cwd=tmp_path, env=environment
        )
        listing[method] = (
            json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout + done.stderr
        )
    text = json.dumps(listing, indent=1, sort_keys=True) + "\n"
    snapshot = HERE / "listing.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
