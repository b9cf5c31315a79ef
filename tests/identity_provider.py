"""An identity provider of a test: it describes itself, publishes its keys and signs tokens, on loopback."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

RESOURCE = "http://127.0.0.1:8377/mcp"


class Provider:
    """Signs tokens with the newest of its keys; `asked` counts the requests by path."""

    def __init__(self, issuer: str) -> None:
        self.issuer, self.asked = issuer, Counter()
        self.document: dict[str, Any] = {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
        self.is_away = False
        self.private: dict[str, Any] = {}
        self.rotate("first")

    def rotate(self, name: str) -> None:
        """Sign with a new key from now on, and publish no other."""
        self.private = {name: generate_private_key(SECP256R1())}

    @property
    def keys(self) -> dict[str, Any]:
        algorithm = jwt.get_algorithm_by_name("ES256")
        shown = ((name, json.loads(algorithm.to_jwk(key.public_key()))) for name, key in self.private.items())
        return {"keys": [{**key, "kid": name, "use": "sig", "alg": "ES256"} for name, key in shown]}

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a good token, with changes; None leaves one out."""
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "aud": RESOURCE,
            "sub": "ada",
            "client_id": "editor",
            "scope": "memory:read",
            "iat": now,
            "exp": now + 300,
        }
        return {name: value for name, value in {**usual, **changed}.items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, **changed: Any) -> str:
        [(name, key)] = self.private.items()
        return jwt.encode(
            self.claims(**changed), key, "ES256", {"kid": name, "typ": "at+jwt", **(header or {})}
        )


@contextmanager
def provider_on_loopback() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked[self.path] += 1
            documents = {"/.well-known/openid-configuration": provider.document, "/keys": provider.keys}
            is_there = self.path in documents and not provider.is_away
            self.send_response(200 if is_there else 503)
            self.end_headers()
            self.wfile.write(json.dumps(documents[self.path]).encode() if is_there else b"away")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
