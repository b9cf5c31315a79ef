"""The protocol's conformance suite on the server over HTTP as teams have it, for a caller with a token."""

import json
import re
import time
from collections.abc import Iterator

import pytest

from cortex.mcp.http_server import open_team_server
from tests.identity_provider import provider_on_loopback
from tests.node import node_programs, run_node
from tests.protocol import SAMPLES_FOLDER
from tests.team import serving

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
    """Return the address of a server whose requests all come with a token: the suite has none."""
    node_programs()
    monkeypatch.setenv("CORTEX_MCP_CALLS_PER_MINUTE", "10000")
    with provider_on_loopback() as provider:
        lines = ("[mcp]", f'issuer = "{provider.issuer}"', f'http_projects = ["{SAMPLES_FOLDER}"]')
        (assistant.home / "config.toml").write_text("\n".join(lines))
        listening = open_team_server(assistant.context, port=0)
        bearer = f"Bearer {provider.token(aud=listening.address, scope='admin', exp=time.time() + 3_600)}"

        async def with_token(scope, receive, send):
            if scope["type"] == "http":
                scope["headers"] = [*scope["headers"], (b"authorization", bearer.encode())]
            await listening.application(scope, receive, send)

        with serving(with_token, listening.socket):
            yield listening.address


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
