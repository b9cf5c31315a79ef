"""A real identity provider (oidc-provider of npm): programs and people get in with its tokens."""

import re
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
import jwt
import pytest
from mcp import Client as ProtocolClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from cortex.flows.operations.maintain.audit import read_calls
from tests.node import node_programs
from tests.team import team_of

CALLBACK = "http://127.0.0.1:9/callback"


class Memory:
    """Keeps tokens and registration of a client, as the protocol's package wants it."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


@pytest.fixture
def issuer():
    """Return the address of a running provider; it is ended with the test."""
    commands = node_programs()
    script = commands.parent.parent / "oidc_provider.mjs"  # modules are looked for beside the script
    shutil.copy(Path(__file__).with_name("oidc_provider.mjs"), script)
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    words = [commands / "node", script, str(port), "resource"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "listening" in process.stdout.readline(), process.stderr.read()
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.communicate()


@pytest.fixture
def team(assistant, issuer):
    (assistant.home / "config.toml").write_text(f'[mcp]\nissuer = "{issuer}"\n')
    with team_of(assistant.context) as team:
        yield team


def connect(team, auth, work):
    async def run():
        async with httpx2.AsyncClient(auth=auth, timeout=60, follow_redirects=True) as http:
            transport = streamable_http_client(team.address, http_client=http)
            async with ProtocolClient(transport, cache=None) as client:
                return await work(client)

    return anyio.run(run)


async def list_and_call(client):
    tools = await client.list_tools()
    result = await client.call_tool("query", {"sql": "select 1 as number"})
    return [tool.name for tool in tools.tools], result.structured_content["rows"]


def test_a_program_gets_a_token_for_this_server_and_calls(team, issuer, assistant):
    memory = Memory()
    secret = "only-for-this-test-0123456789"
    auth = ClientCredentialsOAuthProvider(
        team.address, memory, "nightly", secret, scope="memory:read", issuer=issuer
    )
    tools, rows = connect(team, auth, list_and_call)
    assert (len(tools), rows) == (6, [[1]])
    usual = "memory:read memory:write"  # what the refusal advises to ask for
    claims = jwt.decode(memory.tokens.access_token, options={"verify_signature": False})
    assert (claims["iss"], claims["aud"], claims["scope"]) == (issuer, team.address, usual)
    [row] = read_calls(assistant.context)
    assert row["caller"].startswith("nightly via nightly (mcp ")


def test_a_token_of_the_same_provider_for_another_service_is_refused(team, issuer):
    form = {"grant_type": "client_credentials", "scope": "memory:read"}
    form["resource"] = "https://other.example.org/api"
    secret = ("nightly", "only-for-this-test-0123456789")
    answer = httpx2.post(f"{issuer}/token", data=form, auth=secret).json()
    refused = team.ask("POST", answer["access_token"], json={})
    assert refused.status_code == 401 and "invalid_token" in refused.headers["www-authenticate"]


def test_a_person_signs_in_and_is_known_by_name(team, issuer, assistant):
    """The whole way: 401, what resource and provider say of themselves, registration, login, consent."""
    come: dict[str, str] = {}

    async def sign_in(address):
        come.update(await _walk(address))

    async def code():
        return AuthorizationCodeResult(code=come["code"], state=come["state"], iss=come.get("iss"))

    metadata = OAuthClientMetadata(
        client_name="an editor",
        redirect_uris=[CALLBACK],
        application_type="native",
        token_endpoint_auth_method="none",
        grant_types=["authorization_code"],
    )
    auth = OAuthClientProvider(team.address, metadata, Memory(), sign_in, code)
    tools, rows = connect(team, auth, list_and_call)
    assert (len(tools), rows) == (6, [[1]])
    [row] = read_calls(assistant.context)
    assert row["caller"].startswith("ada via ") and row["outcome"] == "ok"


async def _walk(address):
    """Sign in as ada and consent, as a browser does; return what the client is called back with."""
    async with httpx2.AsyncClient(timeout=30) as browser:
        for _ in range(12):
            answer = await browser.get(address)
            while answer.is_redirect:
                address = urljoin(str(answer.url), answer.headers["location"])
                if address.startswith(CALLBACK):
                    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
                answer = await browser.get(address)
            [action] = re.findall(r'<form[^>]*action="([^"]+)"', answer.text)[:1]
            fields = dict(re.findall(r'<input[^>]*name="(\w+)"[^>]*value="(\w*)"', answer.text))
            if 'name="login"' in answer.text:
                fields |= {"login": "ada", "password": "any"}
            answer = await browser.post(urljoin(str(answer.url), action), data=fields)
            with suppress(KeyError):
                address = urljoin(str(answer.url), answer.headers["location"])
    raise AssertionError(answer.text)
