"""The memory over HTTP: who may enter, what they see, how often they may call, and that nothing stays."""

import json
import socket
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

import anyio
import pytest

from cortex.flows.operations.audit import read_calls
from cortex.mcp.http import MOST_CALLERS, Callers, open_team_server
from cortex.transforms.errors import UsageError
from tests.identity_provider import provider_on_loopback
from tests.protocol import SAMPLES_FOLDER, Assistant, text_of
from tests.team import team_of

LESSON = "The breakwater gate in mole.py opens at 3 m."


@pytest.fixture(scope="module")
def provider():
    with provider_on_loopback() as provider:
        yield provider


@pytest.fixture
def settings(samples, provider):
    """Return the file of settings, with the provider and further lines."""

    def write(*lines):
        issuer = f'issuer = "{provider.issuer}"'
        (samples / "config.toml").write_text("\n".join(["[mcp]", issuer, *lines]) + "\n")

    write()
    return write


@pytest.fixture
def team(assistant: Assistant, settings):
    with team_of(assistant.context) as team:
        yield team


@pytest.fixture
def token(provider, team):
    """Return a token for the team's server, with scopes and other claims."""

    def write(scope="memory:read", **claims):
        return provider.token(scope=scope, **{"aud": team.address, **claims})

    return write


def message(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(tool, **arguments):
    return lambda client: client.call_tool(tool, arguments)


HELLO = message(
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "t", "version": "1"},
)


def test_who_has_no_token_learns_where_to_get_one(team, provider):
    answer = team.ask("POST", json=HELLO)
    challenge = answer.headers["www-authenticate"]
    description = team.listening.description
    assert (answer.status_code, challenge.partition(" ")[0]) == (401, "Bearer")
    assert f'resource_metadata="{description}"' in challenge and "error" not in challenge
    assert 'scope="memory:read memory:write"' in challenge
    document = team.ask("GET", path=description).json()
    assert document["resource"] == team.address
    assert document["authorization_servers"] == [provider.issuer]  # to the letter: clients compare
    assert document["scopes_supported"] == ["memory:read", "memory:write", "memory:delete", "admin"]


@pytest.mark.slow
def test_nothing_else_answers_without_a_token(team):
    for path in ("/mcp", "/", "/elsewhere", "/.well-known/other"):
        for method in ("GET", "POST", "DELETE", "PUT"):
            address = f"http://{urlsplit(team.address).netloc}{path}"
            assert team.ask(method, path=address).status_code == 401, (method, path)


def test_a_bad_token_is_refused_with_the_reason(team, token):
    answer = team.ask("POST", token(aud="https://other.example.org"), json=HELLO)
    assert answer.status_code == 401 and 'error="invalid_token"' in answer.headers["www-authenticate"]
    twice = [("authorization", f"Bearer {token()}")] * 2
    import httpx2

    assert httpx2.post(team.address, headers=twice, json=HELLO).status_code == 401
    assert team.ask("POST", path=f"{team.address}?access_token={token()}", json=HELLO).status_code == 401


def test_while_the_provider_is_away_callers_are_asked_to_come_again(assistant, settings, provider):
    provider.is_away = True
    try:
        with team_of(assistant.context) as team:
            answer = team.ask("POST", provider.token(aud=team.address), json=HELLO)
    finally:
        provider.is_away = False
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0


def test_pages_of_other_hosts_are_refused_though_they_have_a_token(team, token):
    for headers, status in (({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)):
        assert team.ask("POST", token(), headers, json=HELLO).status_code == status
    assert team.ask("POST", token(), json=HELLO).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_call_needs_its_scope_and_what_lacks_one_is_noted_and_not_done(team, token, assistant, mode):
    lesson = {"text": LESSON, "type": "gotcha", "everywhere": True}
    asked = message("tools/call", name="learn", arguments=lesson)
    version = {"mcp-protocol-version": "2025-11-25"}
    answer = team.ask("POST", token(), version, json=asked)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="memory:write"' in answer.headers["www-authenticate"]
    read = team.do(token(), call("recall", question="breakwater gate"), mode=mode)
    assert "breakwater" not in text_of(read).casefold()
    write = token("memory:read memory:write")
    learned = team.do(write, call("learn", **lesson), mode=mode)
    assert learned.structured_content["id"], text_of(learned)
    plan = message("tools/call", name="consolidate", arguments={"plan": "0" * 12})
    assert team.ask("POST", write, version, json=plan).status_code == 403
    outcomes = Counter((row["tool"], row["outcome"]) for row in read_calls(assistant.context))
    assert outcomes == {
        ("learn", "CORTEX_E320"): 1,
        ("consolidate", "CORTEX_E320"): 1,
        ("recall", "ok"): 1,
        ("learn", "ok"): 1,
    }
    callers = {row["caller"] for row in read_calls(assistant.context) if row["outcome"] == "ok"}
    assert len(callers) == 1 and callers.pop().startswith("ada via editor (mcp ")
    assert {row["transport"] for row in read_calls(assistant.context)} == {"http"}


def test_a_batch_is_checked_message_by_message(team, token):
    batch = [HELLO, message("tools/call", name="learn", arguments={"text": LESSON})]
    assert team.ask("POST", token(), json=batch).status_code == 403


@pytest.mark.slow
def test_a_caller_sees_the_projects_of_the_settings_and_else_what_is_shared(team, token, settings):
    def projects(**claims):
        asked = call("query", sql="select distinct project_id from turns")
        return [row[0] for row in team.do(token(**claims), asked).structured_content["rows"]]

    assert projects() == []
    settings(f'http_projects = ["bob={SAMPLES_FOLDER}"]')
    assert projects() == [] and len(projects(sub="bob")) == 1
    settings(f'http_projects = ["{SAMPLES_FOLDER}"]')
    assert projects() == projects(sub="bob") != []
    settings('http_projects = ["ada=*"]')
    assert len(projects()) >= 1 and projects(sub="bob") == []
    # The settings of stdio, where a client is the user's own, say nothing about callers.
    settings('projects = ["*"]')
    assert projects() == []


@pytest.mark.slow
def test_a_role_in_a_project_limits_what_the_token_allows(team, token, settings):
    everything = "memory:read memory:write memory:delete admin"

    def ask(tool, sub="ada", **arguments):
        answer = team.do(token(everything, sub=sub), call(tool, **arguments))
        return json.loads(text_of(answer))["code"] if answer.is_error else answer.structured_content

    projects = {"sql": "select distinct project_id from turns"}
    seen = f'http_projects = ["{SAMPLES_FOLDER}"]'
    settings(seen, f'http_roles = ["ada=writer@{SAMPLES_FOLDER}", "bob=reader"]')
    assert len(ask("query", **projects)["rows"]) == len(ask("query", "bob", **projects)["rows"]) == 1
    assert ask("query", "cy", **projects)["rows"] == [], "who has no role sees no project"
    assert ask("learn", "bob", text=LESSON, type="gotcha") == "CORTEX_E321"
    assert ask("learn", "cy", text=LESSON, type="gotcha", everywhere=True) == "CORTEX_E321"
    assert ask("learn", text=LESSON, type="gotcha", everywhere=True) == "CORTEX_E321", "writer of one project"
    assert ask("learn", text=LESSON, type="gotcha")["id"]
    assert ask("consolidate", plan="0" * 12) == "CORTEX_E321"
    settings(seen, 'http_roles = ["*=reader", "ada=admin"]')
    assert ask("consolidate", plan="0" * 12) != "CORTEX_E321", "an admin's plan is looked for"
    assert ask("consolidate", "bob", plan="0" * 12) == "CORTEX_E321"
    assert ask("query", "bob", sql="select * from calls")["rows"] == []
    # A token's scopes are needed too.
    short = message("tools/call", name="learn", arguments={"text": LESSON})
    assert team.ask("POST", token(), json=short).status_code == 403


@pytest.mark.slow
def test_who_is_in_no_project_learns_for_all_or_not_at_all(team, token):
    write = token("memory:read memory:write")
    refused = team.do(write, call("learn", text=LESSON))
    assert json.loads(text_of(refused))["code"] == "CORTEX_E_USAGE"
    assert not team.do(write, call("learn", text=LESSON, everywhere=True)).is_error


@pytest.mark.slow
def test_each_caller_has_a_limit_of_its_own(team, token, settings):
    settings("calls_per_minute = 2")

    async def three(client):
        results = [await client.call_tool("query", {"sql": "select 1"}) for _ in range(3)]
        return [json.loads(text_of(each))["code"] if each.is_error else "ok" for each in results]

    for claims in ({}, {"sub": "bob"}, {"client_id": "terminal"}):
        assert team.do(token(**claims), three) == ["ok", "ok", "CORTEX_E310"]
    assert team.do(token("memory:read admin"), three) == ["CORTEX_E310"] * 3  # another token, the same caller
    refused = message("tools/call", name="learn", arguments={"text": "x"})
    assert team.ask("POST", token(), json=refused).status_code == 429


def test_a_session_belongs_to_the_caller_who_began_it(team, token):
    begun = team.ask("POST", token(), json=HELLO)
    session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    listing = message("tools/list")
    assert team.ask("POST", token(), session, json=listing).status_code == 200
    assert team.ask("POST", token(sub="bob"), session, json=listing).status_code == 404
    assert team.ask("DELETE", token(), session).status_code == 200
    assert team.ask("POST", token(), session, json=listing).status_code == 404


def test_a_body_that_is_none_or_too_long_is_refused(team, token):
    for content in (b"", b"{", b"[" * 100_000, b'"x"', b"\xff\xfe", b'[null, 5, {"params": 5}]'):
        assert 400 <= team.ask("POST", token(), content=content).status_code < 500
    assert team.ask("POST", token(), content=b" " * 5_000_000).status_code == 413


def test_nothing_is_served_without_a_provider_or_where_tokens_could_be_read(assistant, settings):
    with pytest.raises(UsageError, match=r"mcp\.resource_url"):
        open_team_server(assistant.context, "0.0.0.0", 0)
    settings('resource_url = "http://localhost.example.org/mcp"')
    with pytest.raises(UsageError, match="not https"):
        open_team_server(assistant.context, port=0)
    (assistant.home / "config.toml").write_text("")
    with pytest.raises(UsageError, match=r"mcp\.issuer"):
        open_team_server(assistant.context, port=0)


def test_a_port_that_is_taken_is_an_error_and_one_that_was_served_is_free_again(assistant, settings):
    before = threading.active_count()
    with team_of(assistant.context) as team:
        port = urlsplit(team.address).port
        with pytest.raises(UsageError, match="cannot be had"):
            open_team_server(assistant.context, port=port)
    with socket.create_server(("127.0.0.1", port)):
        pass
    give_up_at = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < give_up_at:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_callers_who_have_not_called_are_forgotten_and_their_limit_is_not(assistant, provider):
    from mcp.server.auth.provider import AccessToken

    callers = Callers(assistant.context)

    def client(number):
        return callers.of(AccessToken(token="t", client_id="editor", scopes=[], subject=str(number)))

    busy = client("busy")
    for number in range(MOST_CALLERS - 1):
        client(number)
    client("busy").window.admit(1)
    client("one more")
    assert len(callers._clients) == MOST_CALLERS and client("busy") is busy


@pytest.mark.slow
def test_of_a_thousand_calls_at_once_over_http_the_limit_is_answered(team, token, assistant):
    async def storm(client):
        codes = Counter()

        async def call(number):
            result = await client.call_tool("query", {"sql": f"select {number}"})
            codes[json.loads(text_of(result))["code"] if result.is_error else "ok"] += 1

        async with anyio.create_task_group() as group:
            for number in range(1_000):
                group.start_soon(call, number)
        return codes

    assert team.do(token(), storm) == {"ok": 120, "CORTEX_E310": 880}
    outcomes = Counter(row["outcome"] for row in read_calls(assistant.context))
    assert outcomes == {"ok": 120, "CORTEX_E310": 1}
