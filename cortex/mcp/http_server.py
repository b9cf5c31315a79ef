"""Serves the memory over Streamable HTTP to callers with a token of the identity provider."""

import socket
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import (
    DEFAULT_MAX_REQUEST_BODY_SIZE,
    RequestBodyLimitMiddleware,
    TransportSecuritySettings,
)
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp

from cortex.flows.context import Context
from cortex.mcp.protocol.access import SCOPES
from cortex.mcp.protocol.client import Caller, Client, with_shared_model
from cortex.mcp.protocol.idle_release import IdleTimer, release_model
from cortex.mcp.server import ClientRequest, MemoryServer, program_of
from cortex.mcp.tokens import (
    LOOPBACK_HOSTS,
    BearerGate,
    TokenChecker,
    is_trustworthy,
)
from cortex.storage.settings.settings import ClientLimits
from cortex.transforms.errors import UsageError

LOOPBACK, PORT, PATH = "127.0.0.1", 8377, "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
# A session of the old protocol is dropped after this long without a request; this is the most there may be.
SESSION_SECONDS, MOST_SESSIONS = 600.0, 200
# Callers who are remembered for their rate; beyond these, who has not called for a minute is forgotten.
MOST_CALLERS = 1_000
# What is under way at the end may finish: a call is safe to be killed, but need not be.
ENDING_SECONDS = 5
PRINCIPAL_CHARS = 80


@dataclass
class Callers:
    """The clients that tokens name, by subject and client: each has its own limit and its own projects."""

    base: Context
    _clients: OrderedDict[tuple[str, str], Client] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        """Share one embedding model among all."""
        self.base = with_shared_model(self.base)

    def of(self, token: AccessToken) -> Client:
        """Return the client of a token."""
        key = (token.subject or "", token.client_id)
        with self._lock:
            if key not in self._clients:
                self._forget_idle()
                self._clients[key] = Client(self.base, "http", principal=key[0])
            self._clients.move_to_end(key)
            return self._clients[key]

    def of_request(self, request: ClientRequest) -> tuple[Client, Caller]:
        """Return the client of a request, and who calls with which scopes."""
        token: AccessToken = request.request.user.access_token  # type: ignore[union-attr]
        return self.of(token), caller_of(token, program_of(request))

    def refuse(self, token: AccessToken, tool: str, arguments: dict[str, Any]) -> None:
        """Note a call that a token does not allow. Raises ScopeMissing or RateLimited."""
        self.of(token).perform(caller_of(token), tool, arguments, lambda context: None)

    def _forget_idle(self) -> None:
        while len(self._clients) >= MOST_CALLERS and next(iter(self._clients.values())).window.is_idle:
            self._clients.popitem(last=False)


def caller_of(token: AccessToken, program: str = "") -> Caller:
    """Return who calls: whom the token is about, through which client, with which program."""
    name = f"{(token.subject or '')[:PRINCIPAL_CHARS]} via {token.client_id[:PRINCIPAL_CHARS]}"
    return Caller(f"{name} ({program})" if program else name, frozenset(token.scopes))


@dataclass(frozen=True)
class TeamServer:
    """A socket, and the application that answers there; `address` is where clients find it."""

    socket: socket.socket
    application: ASGIApp
    address: str
    description: str


def open_team_server(context: Context, host: str = LOOPBACK, port: int = PORT) -> TeamServer:
    """
    Take a port, a free one for 0.

    Raises UsageError if no identity provider is set, the address that tokens are made for could be read on
    the way, or the port is taken.
    """
    limits = context.settings.mcp
    if not limits.issuer:
        raise UsageError(
            "No identity provider is set, so no caller could be let in.",
            "Set it: cortex config set mcp.issuer https://id.example.org",
        )
    place = _bound(host, port)
    try:
        address = limits.resource_url or f"http://{LOOPBACK}:{place.getsockname()[1]}{PATH}"
        if host not in LOOPBACK_HOSTS and not limits.resource_url:
            raise UsageError(
                f"Others reach {host} by a name that tokens have to be made for.",
                "Set it: cortex config set mcp.resource_url https://memory.example.org/mcp",
            )
        if not is_trustworthy(address):
            raise UsageError(f"'{address}' is not https.", "Put a proxy with TLS before it.")
        description = str(build_resource_metadata_url(AnyHttpUrl(address)))
        return TeamServer(place, application(context, limits, address), address, description)
    except UsageError:
        place.close()
        raise


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((host, port))
    except OSError as error:
        place.close()
        raise UsageError(
            f"{host}:{port} cannot be had ({error.strerror}).", "Give another --port."
        ) from error
    return place


def application(context: Context, limits: ClientLimits, address: str) -> ASGIApp:
    """Return the server at `address`: the protocol behind the gate, and the description of the resource."""
    callers = Callers(context)
    parts = urlsplit(address)
    # The package's settings keep addresses as they are written: an issuer with another slash is another one.
    names = AuthSettings.model_validate(
        {"issuer_url": limits.issuer, "resource_server_url": address, "validate_token_resource": False}
    )
    resource = AnyHttpUrl(address)
    protocol = (
        MemoryServer(callers.of_request, IdleTimer(partial(release_model, callers.base)))
        .build()
        .streamable_http_app(
            streamable_http_path=parts.path or "/",
            session_idle_timeout=SESSION_SECONDS,
            max_sessions=MOST_SESSIONS,
            transport_security=_own_names(parts.netloc, f"{parts.scheme}://{parts.netloc}"),
            custom_starlette_routes=create_protected_resource_routes(
                resource, [names.issuer_url], list(SCOPES), "Cortex memory"
            ),
        )
    )
    checker = TokenChecker(limits.issuer, address, limits.keys_url)
    gate = BearerGate(
        protocol, checker, str(build_resource_metadata_url(resource)), WELL_KNOWN, callers.refuse
    )
    return RequestBodyLimitMiddleware(gate, DEFAULT_MAX_REQUEST_BODY_SIZE)


def _own_names(host: str, origin: str) -> TransportSecuritySettings:
    """Return the hosts and origins that requests may name: this server's own, and this machine's."""
    names = [name if ":" not in name else f"[{name}]" for name in LOOPBACK_HOSTS]
    return TransportSecuritySettings(
        allowed_hosts=[host, *names, *(f"{name}:*" for name in names)],
        allowed_origins=[origin, *(f"http://{name}:*" for name in names)],
    )


def serve_http(listening: TeamServer, is_up: Callable[[], None]) -> None:
    """Answer until Ctrl-C or SIGTERM; `is_up` is called once it answers. Leaves no port taken."""
    config = uvicorn.Config(
        listening.application,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=ENDING_SECONDS,
    )
    try:
        _Server(config, is_up).run(sockets=[listening.socket])
    finally:
        listening.socket.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, is_up: Callable[[], None]) -> None:
        super().__init__(config)
        self.is_up = is_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.is_up()
