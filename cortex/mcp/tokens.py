"""
Who may enter over HTTP: a caller with an access token that the identity provider signed for this server.

Signatures and claims are PyJWT's work; here stands which of them count.
"""

import json
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio.to_thread
import jwt
from jwt.exceptions import PyJWKClientConnectionError
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cortex.mcp.protocol.access import READ, SCOPES, WRITE, allows, needed_scope
from cortex.transforms.errors import CortexError, RateLimited, ScopeMissing, UsageError

if TYPE_CHECKING:
    # Notes a call that the token does not allow; raises ScopeMissing or RateLimited.
    NoteRefusal = Callable[[AccessToken, str, dict[str, Any]], None]


# Signatures with a public key alone: with a shared one this server could make tokens itself.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
PUBLIC_KEYS = ("RSA", "EC", "OKP")
# Of an access token (RFC 9068); many providers write the general one, or none.
TOKEN_TYPES = ("at+jwt", "application/at+jwt", "jwt", "")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")

LEEWAY_SECONDS = 30
TOKEN_CHARS = 16_000
# A key that the provider takes back is trusted no longer than this; a new one is looked for at most as often
# as the second says, and a provider that does not answer is left alone for as long.
KEYS_HOLD_SECONDS, COOLDOWN_SECONDS = 300.0, 10.0
FETCH_SECONDS = 5.0
LARGEST_DOCUMENT = 256 * 1024
# Where a provider describes itself: OpenID Connect, and OAuth 2 alone (RFC 8414), before its own path.
_DESCRIPTION, _OAUTH_DESCRIPTION = (
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
)


class TokenRefused(Exception):
    """A token that is not good here; the reason is for the server's log and its caller."""


class ProviderAway(Exception):
    """The identity provider's keys cannot be had now: nothing is known of the token."""


def is_trustworthy(address: str) -> bool:
    """
    Return whether an address cannot be read or answered by others on the way: TLS, or this machine.

    >>> is_trustworthy("https://id.example.org"), is_trustworthy("http://localhost.example.org")
    (True, False)
    """
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS)
        )
    except ValueError:
        return False


@dataclass
class TokenChecker:
    """
    Checks tokens of `issuer` that are for `audience`, the address of this server.

    The provider's keys are at `keys_url`; if that is empty, at the address that its description gives.
    They are fetched when a token first needs them. Safe to use from several threads.
    """

    issuer: str
    audience: str
    keys_url: str = ""
    clock: Callable[[], float] = time.monotonic
    _keys: jwt.PyJWKClient | None = None
    _failed_at: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        """Raise UsageError for an address whose answers others could change."""
        for address in filter(None, (self.issuer, self.keys_url)):
            if not is_trustworthy(address):
                raise UsageError(
                    f"'{address}' is not https.", "Give the identity provider's address with https://."
                )

    def check(self, token: str) -> AccessToken:
        """Return what a token says. Raises TokenRefused and ProviderAway."""
        if len(token) > TOKEN_CHARS:
            raise TokenRefused("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
            self._check_header(header)
            claims = jwt.decode(
                token,
                self._key(header),
                algorithms=list(ALGORITHMS),
                audience=[self.audience, self.audience.rstrip("/")],
                issuer=self.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"], "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(str(error)) from error
        if "cnf" in claims:
            raise TokenRefused("the token is bound to a key, which a bearer cannot prove")
        return AccessToken(
            token=token,
            client_id=_client_of(claims),
            scopes=token_scopes(claims),
            expires_at=int(claims["exp"]) + LEEWAY_SECONDS,
            resource=self.audience,
            subject=str(claims["sub"]),
            claims={"iss": self.issuer},
        )

    def _check_header(self, header: Mapping[str, Any]) -> None:
        if header.get("alg") not in ALGORITHMS:
            raise TokenRefused("the token is signed by an algorithm that does not count")
        if str(header.get("typ", "")).lower() not in TOKEN_TYPES:
            raise TokenRefused("the token is not an access token")

    def _key(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        """Return the key that a token names. Raises ProviderAway, TokenRefused and PyJWTError."""
        with self._lock:
            if self._failed_at is not None and self.clock() - self._failed_at < COOLDOWN_SECONDS:
                raise ProviderAway("the identity provider did not answer a moment ago")
            try:
                key = self._client().get_signing_key(str(header.get("kid", "")))
            except (PyJWKClientConnectionError, OSError, ValueError) as error:
                self._failed_at = self.clock()
                raise ProviderAway(f"the identity provider's keys cannot be had: {error}") from error
            self._failed_at = None
        if key.key_type not in PUBLIC_KEYS:
            raise TokenRefused("the token's key is not a public one")
        return key

    def _client(self) -> jwt.PyJWKClient:
        if self._keys is None:
            self._keys = jwt.PyJWKClient(
                self.keys_url or _keys_url(self.issuer),
                lifespan=KEYS_HOLD_SECONDS,
                cooldown_duration=COOLDOWN_SECONDS,
                timeout=FETCH_SECONDS,
            )
        return self._keys


def token_scopes(claims: Mapping[str, Any]) -> list[str]:
    """
    Return the scopes that a token carries, as one text (RFC 8693) or as some providers list them.

    `admin:*` is another way to write `admin`.

    >>> token_scopes({"scope": "memory:read admin:*"}), token_scopes({"scp": ["memory:read"]})
    (['memory:read', 'admin'], ['memory:read'])
    """
    given = claims.get("scope", claims.get("scp", ()))
    words = given.split(" ") if isinstance(given, str) else given if isinstance(given, list) else ()
    return ["admin" if word == "admin:*" else word for word in words if isinstance(word, str) and word]


def _client_of(claims: Mapping[str, Any]) -> str:
    return str(claims.get("client_id") or claims.get("azp") or claims.get("cid") or "unknown")


def _keys_url(issuer: str) -> str:
    """Return where a provider says that its keys are. Raises OSError and ValueError."""
    parts = urlsplit(issuer)
    oauth = f"{parts.scheme}://{parts.netloc}{_OAUTH_DESCRIPTION}{parts.path.rstrip('/')}"
    try:
        document = _fetched(issuer.rstrip("/") + _DESCRIPTION)
    except (OSError, ValueError):
        document = _fetched(oauth)
    keys_url = document.get("jwks_uri")
    if document.get("issuer") != issuer:
        raise ValueError(f"the provider calls itself {str(document.get('issuer'))[:200]!r}")
    if not isinstance(keys_url, str) or not is_trustworthy(keys_url):
        raise ValueError("the provider names no https address of its keys")
    return keys_url


def _fetched(address: str) -> dict[str, Any]:
    with urllib.request.build_opener(_StaysThere()).open(address, timeout=FETCH_SECONDS) as answer:
        document = json.loads(answer.read(LARGEST_DOCUMENT))
    if not isinstance(document, dict):
        raise ValueError(f"{address} is not a description of a provider")
    return document


class _StaysThere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it could lead to an address without TLS."""

    def redirect_request(self, *_: Any) -> None:
        return None


# -- Bearer authentication of the HTTP server: a valid token is required, and limits what may be asked.

# What clients without a token are advised to ask for; the other scopes are for who needs them.
USUAL_SCOPES = f"{READ} {WRITE}"


class BearerGate:
    """
    Lets requests with a good token pass to `app`, and answers the others as OAuth 2 has it (RFC 6750, 9728).

    401 without a good token, 403 if it lacks a scope, 503 while the identity provider is away. What is
    below `open_path`, the description of this resource, is for everybody.
    """

    def __init__(
        self, app: ASGIApp, checker: TokenChecker, description: str, open_path: str, refuse: "NoteRefusal"
    ) -> None:
        """Take the address of the resource's description, which every refusal names."""
        self.app, self.checker, self.description = app, checker, description
        self.open_path, self.refuse = open_path, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on with its user."""
        if scope["type"] != "http" or scope["path"].startswith(self.open_path):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        response: ASGIApp
        try:
            token = await anyio.to_thread.run_sync(self.checker.check, _bearer(request))
        except TokenRefused as error:
            response = self._refusal(401, _error(request), str(error), USUAL_SCOPES)
        except ProviderAway:
            wait = {"Retry-After": str(int(COOLDOWN_SECONDS))}
            response = JSONResponse({"error": "temporarily_unavailable"}, 503, headers=wait)
        else:
            scope["user"] = AuthenticatedUser(token)
            body = await _whole_body(request)
            if body is None:
                response = JSONResponse({"error": "the request was not sent in time"}, 408)
            else:
                refusal = await self._short_of(token, body)
                response, receive = refusal or self.app, _replayed(body, receive)
        await response(scope, receive, send)

    async def _short_of(self, token: "AccessToken", body: bytes) -> JSONResponse | None:
        """Return the refusal of a message that the token does not allow, None if it does."""
        for method, name, arguments in _asked(body):
            needed = needed_scope(method, name, arguments)
            if method == "initialize":  # a session takes room: who may do nothing opens none
                needed = next((each for each in SCOPES if each in token.scopes), READ)
            if allows(token.scopes, needed):
                continue
            try:
                await anyio.to_thread.run_sync(partial(self.refuse, token, name or method, arguments))
            except RateLimited as error:
                return JSONResponse(error.as_dict(), 429)
            except ScopeMissing:
                pass
            except CortexError as error:
                return JSONResponse(error.as_dict(), 500)
            return self._refusal(403, "insufficient_scope", f"this needs the scope {needed}", needed)
        return None

    def _refusal(self, status: int, error: str, reason: str, wanted: str) -> JSONResponse:
        words = {"error": error, "error_description": reason if error else ""}
        parts = {**words, "scope": wanted, "resource_metadata": self.description}
        challenge = ", ".join(f'{name}="{_plain(value)}"' for name, value in parts.items() if value)
        content = {**words, "scope": wanted} if error else {"error": "a token is needed", "scope": wanted}
        return JSONResponse(content, status, headers={"WWW-Authenticate": f"Bearer {challenge}"})


async def _whole_body(request: Request) -> bytes | None:
    """Return the body of a request; None if its sender went, or did not send it in time."""
    with suppress(ClientDisconnect):
        return await request.body()
    return None


def _bearer(request: Request) -> str:
    """Return the token of a request. Raises TokenRefused; one in the address does not count."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or len(request.headers.getlist("authorization")) != 1:
        raise TokenRefused("no token was sent")
    return token.strip()


def _error(request: Request) -> str:
    """Return the error of a refusal: none if the caller did not know yet that a token is needed."""
    return "invalid_token" if "authorization" in request.headers else ""


def _plain(text: str) -> str:
    """Return a text as a quoted string of a header may hold it."""
    return "".join(character for character in text if " " <= character <= "~" and character not in '"\\')


def _asked(body: bytes) -> Sequence[tuple[str, str, dict[str, Any]]]:
    """Return method, tool and arguments of each message of a body; what is none is refused further on."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    return [_message(each) for each in (content if isinstance(content, list) else [content])]


def _message(content: Any) -> tuple[str, str, dict[str, Any]]:
    message = content if isinstance(content, dict) else {}
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    arguments = params.get("arguments")
    name = params.get("name")
    return (
        str(message.get("method", "")),
        name if isinstance(name, str) else "",
        arguments if isinstance(arguments, dict) else {},
    )


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then what follows."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
