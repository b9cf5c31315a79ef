"""Serves the memory over Streamable HTTP to callers with a token of the identity provider."""

import asyncio
import re
import socket
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import (
    DEFAULT_MAX_REQUEST_BODY_SIZE,
    RequestBodyLimitMiddleware,
    TransportSecuritySettings,
)
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from cortex.flows.context import Context
from cortex.mcp.protocol.access import SCOPES
from cortex.mcp.protocol.client import Caller, Client, with_shared_model
from cortex.mcp.protocol.idle_release import IdleTimer, release_model
from cortex.mcp.server import ClientRequest, MemoryServer, program_of
from cortex.mcp.tokens import LOOPBACK_HOSTS, BearerGate, TokenChecker, is_trustworthy
from cortex.storage.settings.settings import ClientLimits
from cortex.transforms.errors import UsageError

LOOPBACK, PORT, PATH = "127.0.0.1", 8377, "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
# A session of the old protocol is dropped after this long without a request; this is the most there may be.
SESSION_SECONDS, MAX_SESSIONS = 600.0, 200
# Of one subject; beyond these, and near the most there may be, the one that was longest idle goes.
MAX_OF_A_SUBJECT, SESSIONS_SPARED = 20, 10
# A request's head is some hundred bytes: a connection that has not sent one by then is closed.
HEAD_SECONDS = 10.0
# A body has 4 MiB at most; what comes more slowly holds a connection for its own sake.
BODY_SECONDS = 20.0
# Callers who are remembered for their rate; beyond these, who has not called for a minute is forgotten.
MAX_CALLERS = 1_000
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
        while len(self._clients) >= MAX_CALLERS and next(iter(self._clients.values())).window.is_idle:
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
            max_sessions=MAX_SESSIONS,
            transport_security=_own_names(parts.netloc, f"{parts.scheme}://{parts.netloc}"),
            custom_starlette_routes=create_protected_resource_routes(
                resource, [names.issuer_url], list(SCOPES), "Cortex memory"
            ),
        )
    )
    checker = TokenChecker(limits.issuer, address, limits.keys_url)
    gate = BearerGate(
        OwnSessions(protocol), checker, str(build_resource_metadata_url(resource)), WELL_KNOWN, callers.refuse
    )
    named = OwnNames(gate, parts.netloc, f"{parts.scheme}://{parts.netloc}")
    return _with_bodies_in_time(RequestBodyLimitMiddleware(named, DEFAULT_MAX_REQUEST_BODY_SIZE))


def _with_bodies_in_time(app: ASGIApp) -> ASGIApp:
    """Return an application to which a client that does not send its body within BODY_SECONDS is gone."""

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        ends_at, is_whole = anyio.current_time() + BODY_SECONDS, scope["type"] != "http"

        async def in_time() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            with anyio.move_on_at(ends_at):
                message = await receive()
                is_whole = not message.get("more_body", False)
                return message
            return {"type": "http.disconnect"}

        await app(scope, in_time, send)

    return within


@dataclass
class OwnSessions:
    """
    Keeps the sessions of the old protocol from being used up: by subject, and all together.

    Closed is the one that was longest without a request; its client opens another when it comes back.
    """

    app: ASGIApp
    _owners: OrderedDict[bytes, AuthenticatedUser] = field(default_factory=OrderedDict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, then close what it made one too many."""
        if scope["type"] != "http" or "user" not in scope:
            await self.app(scope, receive, send)
            return
        named = dict(scope["headers"]).get(SESSION_HEADER)
        if named is not None and named in self._owners:
            self._owners.move_to_end(named)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                opened = dict(message.get("headers", ())).get(SESSION_HEADER)
                if opened:
                    self._owners.setdefault(opened, scope["user"])
                if named and message["status"] == 404:
                    self._owners.pop(named, None)
            await send(message)

        await self.app(scope, receive, noting)
        for session, owner in self._too_many(scope["user"]):
            await self._close(scope, session, owner)

    def _too_many(self, user: AuthenticatedUser) -> list[tuple[bytes, AuthenticatedUser]]:
        """Take out and return the sessions that are to be closed, the longest idle first."""
        subject = user.access_token.subject
        own = [name for name, owner in self._owners.items() if owner.access_token.subject == subject]
        names = own[: max(0, len(own) - MAX_OF_A_SUBJECT)]
        others = [name for name in self._owners if name not in names]
        names += others[: max(0, len(others) - MAX_SESSIONS + SESSIONS_SPARED)]
        return [(name, self._owners.pop(name)) for name in names]

    async def _close(self, scope: Scope, session: bytes, owner: AuthenticatedUser) -> None:
        kept = [(name, value) for name, value in scope["headers"] if name in _CLOSING_HEADERS]
        headers = [*kept, (SESSION_HEADER, session)]

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Message) -> None:
            pass

        await self.app({**scope, "method": "DELETE", "user": owner, "headers": headers}, nothing, unheard)


SESSION_HEADER = b"mcp-session-id"
_CLOSING_HEADERS = (b"host", b"origin", b"accept", b"mcp-protocol-version")


class OwnNames:
    """
    Refuses requests for another host or from another origin, whole: a name and at most a port.

    The package's own check takes `127.0.0.1:` as a beginning, and so `127.0.0.1:8377.evil.example` too.
    """

    def __init__(self, app: ASGIApp, host: str, origin: str) -> None:
        """Take the host and origin that this server has for its clients."""
        names = "|".join(re.escape(f"[{name}]" if ":" in name else name) for name in LOOPBACK_HOSTS)
        self.app = app
        self._hosts = re.compile(rf"(?:{re.escape(host)}|(?:{names})(?::\d{{1,5}})?)", re.IGNORECASE)
        self._origins = re.compile(
            rf"(?:{re.escape(origin)}|http://(?:{names})(?::\d{{1,5}})?)", re.IGNORECASE
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on a request that names this server; 421 for another host, 403 for another origin."""
        response = self.app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if any(not self._hosts.fullmatch(name) for name in headers.getlist("host") or [""]):
                response = PlainTextResponse("Invalid Host header", 421)
            elif any(not self._origins.fullmatch(name) for name in headers.getlist("origin")):
                response = PlainTextResponse("Invalid Origin header", 403)
        await response(scope, receive, send)


def _own_names(host: str, origin: str) -> TransportSecuritySettings:
    """Return the hosts and origins that the package lets pass: no fewer than OwnNames."""
    names = [name if ":" not in name else f"[{name}]" for name in LOOPBACK_HOSTS]
    return TransportSecuritySettings(
        allowed_hosts=[host, *names, *(f"{name}:*" for name in names)],
        allowed_origins=[origin, *(f"http://{name}:*" for name in names)],
    )


def serve_http(listening: TeamServer, is_up: Callable[[], None]) -> None:
    """Answer until Ctrl-C or SIGTERM; `is_up` is called once it answers. Leaves no port taken."""
    config = uvicorn.Config(
        listening.application,
        http=_InTime,
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


class _InTime(H11Protocol):
    """HTTP/1.1 whose connections are closed where the head of a request does not come in time."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._clock is not None:
            self._clock.cancel()

    def _watch(self) -> None:
        """Begin to wait for a head, or end it once it has come."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._clock is not None:
                self._clock.cancel()
            self._clock = None
        elif self._clock is None:
            self._clock = self.loop.call_later(HEAD_SECONDS, self._end_if_waiting)

    def _end_if_waiting(self) -> None:
        self._clock = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, is_up: Callable[[], None]) -> None:
        super().__init__(config)
        self.is_up = is_up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.is_up()
