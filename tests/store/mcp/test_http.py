"""The memory over HTTP: who may enter, what they see, how often they may call, and that nothing stays."""

import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from cortex.mcp import http_server
from cortex.mcp.http_server import MAX_CALLERS, Callers, open_team_server
from cortex.transforms.errors import UsageError
from tests.identity_provider import provider_on_loopback
from tests.protocol import Assistant
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


@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("host", "evil.example", 421),
        ("host", "127.0.0.1:evil", 421),
        ("host", "127.0.0.1:8377.evil.example", 421),
        ("origin", "https://evil.example", 403),
        ("origin", "http://localhost:evil.example", 403),
        ("origin", "http://127.0.0.1:8377.evil.example", 403),
        ("origin", "http://localhost:80@evil.example", 403),
        ("origin", "http://localhost:6274", 200),
        ("host", "localhost:9000", 200),
    ],
)
def test_pages_of_other_hosts_are_refused_though_they_have_a_token(team, token, name, value, status):
    assert team.ask("POST", token(), {name: value}, json=HELLO).status_code == status


def test_a_session_needs_a_scope(team, token):
    assert team.ask("POST", token(scope=""), json=HELLO).status_code == 403
    assert team.ask("POST", token(scope="memory:write"), json=HELLO).status_code == 200


def test_a_body_that_does_not_come_in_time_is_answered_and_holds_nothing(team, token, monkeypatch):
    monkeypatch.setattr(http_server, "BODY_SECONDS", 0.3)
    parts = urlsplit(team.address)
    head = f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {token()}\r\n"
    with socket.create_connection((parts.hostname, parts.port), 10) as connection:
        connection.sendall(f"{head}content-length: 1000\r\n\r\n{{".encode())
        assert connection.recv(12) == b"HTTP/1.1 408"


def test_a_batch_is_checked_message_by_message(team, token):
    batch = [HELLO, message("tools/call", name="learn", arguments={"text": LESSON})]
    assert team.ask("POST", token(), json=batch).status_code == 403


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
    for number in range(MAX_CALLERS - 1):
        client(number)
    client("busy").window.admit(1)
    client("one more")
    assert len(callers._clients) == MAX_CALLERS and client("busy") is busy
