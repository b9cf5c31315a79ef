"""The protocol's conformance suite on the real server, over HTTP on loopback: the suite speaks no other."""

import json
import re
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from cortex.mcp.client import Client
from cortex.mcp.limiter import SlidingWindow
from cortex.mcp.server import MemoryServer
from tests.mcp.node import node_programs, run_node

# What a scenario proves about this server. Those marked "-" pass on any: they call a tool that is not there.
PROVES = {
    "2026-07-28": {
        "completion-complete": "completion answers in the form asked for",
        "tools-list": "tools are listed with valid names and schemas, in one order",
        "server-sse-multiple-streams": "several streams are served at a time",
        "resources-list": "resources are listed with addresses and names",
        "sep-2164-resource-not-found": "an address that leads nowhere is an error that names it",
        "prompts-list": "prompts are listed with their arguments",
        "dns-rebinding-protection": "a page of another host is refused",
        "caching": "lists and contents say how long they hold, and for whom",
        "input-required-result-missing-input-response": "-",
        "input-required-result-unsupported-methods": "methods that take no answers do not ask",
        "input-required-result-ignore-extra-params": "-",
        "input-required-result-validate-input": "-",
        "http-header-validation": "headers that contradict the body are refused",
    },
    "2025-11-25": {
        "server-initialize": "the handshake of the old era",
        "ping": "ping",
        "completion-complete": "completion answers in the form asked for",
        "tools-list": "tools are listed with valid names and schemas",
        "server-sse-multiple-streams": "several streams are served at a time",
        "resources-list": "resources are listed with addresses and names",
        "prompts-list": "prompts are listed with their arguments",
        "dns-rebinding-protection": "a page of another host is refused",
        "server-session-lifecycle": "sessions of the old era begin and end",
    },
}
# These call tools, resources and prompts of the suite's own reference server (test_image_content,
# test://static-text, …), or ask for parts of the protocol that a memory has no use for.
NOT_OURS = re.compile(
    r"tools-call-(image|audio|embedded-resource|mixed-content|with-\w+|sampling|elicitation|simple-text)"
    r"|resources-(read-\w+|templates-read|subscribe|unsubscribe)|prompts-get-[\w-]+|elicitation-[\w-]+"
    r"|input-required-result-[\w-]+|tasks-[\w-]+|logging-set-level|json-schema-2020-12|server-sse-polling"
    r"|http-custom-header-server-validation|tools-call-error"
    r"|server-stateless"  # looked at check by check: some need the reference server's tools
)
LINE = re.compile(r"^(✓|✗) ([\w-]+): \d+ passed, \d+ failed$", re.MULTILINE)


@pytest.fixture
def address(assistant, monkeypatch) -> Iterator[str]:
    """Return the address of a server on a free port of loopback."""
    node_programs()
    monkeypatch.setenv("CORTEX_MCP_CALLS_PER_MINUTE", "10000")
    app = MemoryServer(Client(assistant.context, "http", SlidingWindow())).build().streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.05)
    [listening] = [socket for each in server.servers for socket in each.sockets]
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.slow
@pytest.mark.parametrize("revision", PROVES)
def test_the_server_conforms_where_the_scenario_is_about_it(address, tmp_path, revision):
    done = run_node(
        "conformance", "server", "--url", address, "--requirements", revision, "-o", tmp_path / "results"
    )
    results = {name: mark for mark, name in LINE.findall(done.stdout)}
    assert results, done.stdout + done.stderr
    passed = {name for name, mark in results.items() if mark == "✓"}
    assert PROVES[revision].keys() - passed == set()
    unexplained = {name for name in results.keys() - passed if not NOT_OURS.fullmatch(name)}
    assert unexplained == set()
    for checks in (tmp_path / "results").glob("server-server-stateless*/checks.json"):
        failed = [check for check in json.loads(checks.read_text()) if check["status"] == "FAILURE"]
        assert [check for check in failed if not check["errorMessage"].startswith("Not testable")] == []
