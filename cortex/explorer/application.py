"""
The explorer as a web application: which view answers at which address, errors, and who may ask.

A page of another site can make a browser ask a port of this machine, and can give a name of its own this
machine's address (DNS rebinding). So a request needs the host by number with the port, a cookie that only the
one-time link sets, and for a change the page's own origin and a token that only its forms hold.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from urllib.parse import parse_qsl, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from cortex.explorer.actions import ACTIONS, Action, Done, Notices
from cortex.explorer.page import AnswerCache, Page, ViewRequest, html_of, json_of
from cortex.explorer.views import NAVIGATION, STATIC_TYPES, VIEWS, nothing_here
from cortex.flows.context import Context
from cortex.transforms.errors import (
    CortexError,
    LowQuality,
    NotFound,
    StoreBusy,
    UnknownProject,
    UnknownValue,
    UsageError,
    contained,
)

# -- Who may ask the explorer: nobody but the browser that its address was opened in.

# `none` is what a browser says of an address that a person typed or clicked outside of it.
_OWN_SITES = frozenset(("same-origin", "none", ""))

ANSWER_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass
class AccessGate:
    """Decides on requests to one explorer at `host` (with its port), such as 127.0.0.1:41234."""

    host: str
    link_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _is_used: bool = False

    @property
    def origin(self) -> str:
        """Return the origin of the explorer's own pages."""
        return f"http://{self.host}"

    @property
    def cookie_name(self) -> str:
        """Return the cookie's name: cookies do not know ports, so two explorers need two names."""
        return f"cortex-explore-{self.host.rpartition(':')[2]}"

    @property
    def form_token(self) -> str:
        """Return what a form of these pages carries."""
        return hashlib.sha256(f"form {self._session}".encode()).hexdigest()

    def enter(self, token: str) -> str | None:
        """Return the cookie for the one-time token, which works once; None for another one."""
        if self._is_used or not _same(token, self.link_token):
            return None
        self._is_used = True
        return self._session

    def refusal(self, method: str, headers: Mapping[str, str], cookie: str) -> str:
        """Return why a request is refused, "" if it is not; the token of forms is checked on its own."""
        if problem := self.foreign(method, headers):
            return problem
        if not _same(cookie, self._session):
            return "This browser did not open the explorer. Open the link that `cortex explore` printed."
        return ""

    def foreign(self, method: str, headers: Mapping[str, str]) -> str:
        """Return why a request comes from elsewhere, "" if it does not."""
        if headers.get("host", "") != self.host:
            return f"The explorer answers to {self.host} alone."
        origin = headers.get("origin", "")
        if origin and origin != self.origin:
            return "The request comes from another page."
        if headers.get("sec-fetch-site", "") not in _OWN_SITES:
            return "The request comes from another site."
        if method not in ("GET", "HEAD") and origin != self.origin:
            return "A change needs the origin of the explorer's own page."
        return ""

    def is_form(self, token: str) -> bool:
        """Return whether a form of these pages was sent."""
        return _same(token, self.form_token)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


# A form of these pages holds one memory's words at most.
MAX_FORM_BYTES = 64_000
# A browser on this machine sends it within milliseconds.
MAX_FORM_SECONDS = 1.0
JSON_ENDING = ".json"
STATUS_OF = {
    NotFound: 404,
    UnknownProject: 404,
    UsageError: 400,
    UnknownValue: 400,
    LowQuality: 400,
    StoreBusy: 409,
}


@dataclass
class Explorer:
    """
    What one explorer knows while it runs.

    `open_context` gives the context of a request, so that a changed setting counts at once. `asked_at` is
    when the last request came, by the monotonic clock; `is_read_only` shows no form and refuses every change.
    """

    open_context: Callable[[], Context]
    gate: AccessGate
    is_read_only: bool = False
    notices: Notices = field(default_factory=Notices)
    answers: AnswerCache = field(default_factory=AnswerCache)
    asked_at: float = field(default_factory=time.monotonic)
    writing: threading.Lock = field(default_factory=threading.Lock)

    def application(self) -> Starlette:
        """Return the web application."""
        return Starlette(routes=[Route("/{path:path}", self._answer, methods=["GET", "HEAD", "POST"])])

    async def _answer(self, request: Request) -> Response:
        # A page that loads itself again is not a person: left open, it must not keep the explorer running.
        if not request.query_params.get("live"):
            self.asked_at = time.monotonic()
        response = await self._response(request)
        for name, value in ANSWER_HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    async def _response(self, request: Request) -> Response:
        path, method, gate = request.url.path, request.method, self.gate
        if path == "/enter" and method == "GET" and request.headers.get("host") == gate.host:
            return self._exchange_token(request)
        cookie = request.cookies.get(gate.cookie_name, "")
        if problem := gate.refusal(method, request.headers, cookie):
            return Response(f"{problem}\n", 403, media_type="text/plain")
        if path.startswith("/static/"):
            return _static(path.removeprefix("/static/"))
        if method == "POST":
            return await self._done(request)
        return await run_in_threadpool(self._shown, path, request.query_params)

    def _exchange_token(self, request: Request) -> Response:
        """Turn the one-time token into a cookie; a page leads on, since a redirect may lose the cookie."""
        session = self.gate.enter(request.query_params.get("token", ""))
        if session is None:
            text = "This link was used before, or is not complete. Start again: cortex explore\n"
            return Response(text, 403, media_type="text/plain")
        response = Response(html_of("enter.html", {}), media_type="text/html")
        response.set_cookie(self.gate.cookie_name, session, httponly=True, samesite="strict", path="/")
        return response

    def _shown(self, path: str, query: Mapping[str, str]) -> Response:
        """Return the response of a view; a mistake in our own code ends one page, not the explorer."""
        reasons: list[str] = []
        with contained(reasons.append):
            return self._viewed(path, query)
        return Response(f"{reasons[0]}. The other pages go on.\n", 500, media_type="text/plain")

    def _viewed(self, path: str, query: Mapping[str, str]) -> Response:
        as_json = path.endswith(JSON_ENDING)
        address = path.removesuffix(JSON_ENDING)
        page = self.page(address, dict(query))
        if as_json:
            return Response(json_of(page.data), page.status, media_type="application/json")
        if "download" in page.extra:
            return page.extra["download"]  # type: ignore[return-value]
        return Response(self.html(page, address, dict(query)), page.status, media_type="text/html")

    def page(self, path: str, query: Mapping[str, str]) -> Page:
        """Return the page at a path; what the store or a person's words refuse is a page too."""
        try:
            for pattern, view in VIEWS.items():
                if match := re.fullmatch(pattern, path):
                    context = self.open_context()
                    writes = not self.is_read_only
                    return view(ViewRequest(context, path, match.groupdict(), query, writes, self.answers))
            return nothing_here()
        except CortexError as error:
            return error_page(error)

    def html(self, page: Page, path: str, query: Mapping[str, str]) -> str:
        """Return a page as HTML."""
        values = {
            "refresh_seconds": 0,
            **page.data,
            **page.extra,
            "title": page.title,
            "navigation": NAVIGATION,
            "path": path,
            "json_address": ViewRequest(self.open_context(), f"{path}{JSON_ENDING}", {}, query).link(done=""),
            "form_token": self.gate.form_token,
            "writes": not self.is_read_only,
            "notice": self.notices.get(query.get("done", "")),
            "now": self.open_context().now,
        }
        return html_of(page.template, values)

    def render_address(self, address: str) -> str:
        """Return the page at an address, its query included, as HTML: what a browser would be given."""
        parts = urlsplit(address)
        query = dict(parse_qsl(parts.query))
        return self.html(self.page(parts.path, query), parts.path, query)

    async def _done(self, request: Request) -> Response:
        """Do what a form asks for, and lead to the page that shows it."""
        if self.is_read_only:
            return Response("The explorer was started read-only.\n", 403, media_type="text/plain")
        try:
            async with asyncio.timeout(MAX_FORM_SECONDS):
                body = await _body_of(request)
        except TimeoutError:
            closing = {"Connection": "close"}
            return Response("The form did not come.\n", 408, closing, media_type="text/plain")
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=200))
        if not self.gate.is_form(form.pop("token", "")):
            return Response("The form is not one of these pages'.\n", 403, media_type="text/plain")
        for pattern, action in ACTIONS.items():
            if match := re.fullmatch(pattern, request.url.path):
                return await run_in_threadpool(self._run_action, action, match.groupdict(), form)
        return Response("There is nothing to do here.\n", 404, media_type="text/plain")

    def _run_action(self, action: Action, parts: Mapping[str, str], form: Mapping[str, str]) -> Response:
        try:
            with self.writing:
                done: Done = action(self.open_context(), parts, form)
        except CortexError as error:
            page = error_page(error)
            return Response(self.html(page, "", {}), page.status, media_type="text/html")
        if done.erases:
            # An undo and an answer may hold words that were just forgotten.
            self.notices.clear()
            self.answers.clear()
        name = self.notices.add(done.notice)
        separator = "&" if "?" in done.address else "?"
        return RedirectResponse(f"{done.address}{separator}done={name}", 303)


def error_page(error: CortexError) -> Page:
    """Return an error as a page, with its next step and its code."""
    status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), 500)
    data = {"error": error.as_dict(), "problem": error.problem, "next_step": error.next_step}
    return Page("error.html", "That did not work", data, {"code": error.code}, status)


async def _body_of(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            return b""
    return body


def _static(name: str) -> Response:
    if name not in STATIC_TYPES:
        return Response("Not found.\n", 404, media_type="text/plain")
    content = (files("cortex.explorer") / "static" / name).read_bytes()
    return Response(content, media_type=STATIC_TYPES[name], headers={"Cache-Control": "max-age=3600"})
