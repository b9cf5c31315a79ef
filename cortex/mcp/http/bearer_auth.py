"""The door of a server over HTTP: who has a token may enter, and ask for what the token allows."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cortex.mcp.http.tokens import (
    COOLDOWN_SECONDS,
    ProviderAway,
    TokenChecker,
    TokenRefused,
)
from cortex.mcp.protocol.scopes import (
    READ,
    WRITE,
    allows,
    needed_scope,
)
from cortex.transforms.errors import CortexError, RateLimited, ScopeMissing

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

    # Notes a call that the token does not allow; raises ScopeMissing or RateLimited.
    NoteRefusal = Callable[[AccessToken, str, dict[str, Any]], None]

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
            body = await request.body()
            refusal = await self._short_of(token, body)
            response, receive = refusal or self.app, _replayed(body, receive)
        await response(scope, receive, send)

    async def _short_of(self, token: "AccessToken", body: bytes) -> JSONResponse | None:
        """Return the refusal of a message that the token does not allow, None if it does."""
        for method, name, arguments in _asked(body):
            needed = needed_scope(method, name, arguments)
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
