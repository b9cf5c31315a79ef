"""
Who may ask the explorer: nobody but the browser that its address was opened in.

A page of another site can make a browser ask a port of this machine, and can give a name of its own this
machine's address (DNS rebinding). So a request needs the host by number with the port, a cookie that only the
one-time link sets, and for a change the page's own origin and a token that only its forms hold.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

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
