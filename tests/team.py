"""The server over HTTP in a thread of a test, and clients of it with a token."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import uvicorn
from mcp import Client as ProtocolClient
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp

from cortex.flows.context import Context
from cortex.mcp.http_server import TeamServer, open_team_server


@contextmanager
def serving(application: ASGIApp, place: Any) -> Iterator[None]:
    """Answer at a socket, and end as the command does."""
    config = uvicorn.Config(
        application, log_level="error", timeout_graceful_shutdown=5, lifespan="on", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.02)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(30)
        place.close()
        assert not thread.is_alive()


@dataclass
class Team:
    """A server for callers with a token; `get` and `post` send bare requests."""

    listening: TeamServer

    @property
    def address(self) -> str:
        return self.listening.address

    def ask(self, method: str, token: str = "", headers: dict[str, str] | None = None, **more: Any) -> Any:
        path = more.pop("path", self.address)
        kinds = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        bearer = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.request(
            method, path, headers={**kinds, **bearer, **(headers or {})}, timeout=30, **more
        )

    def do(self, token: str, work: Callable[[ProtocolClient], Any], **options: Any) -> Any:
        """Connect with a token, do asynchronous work, disconnect; return what the work returns."""

        async def run() -> Any:
            headers = {"authorization": f"Bearer {token}"}
            limits = httpx2.Limits(max_connections=50)
            async with httpx2.AsyncClient(headers=headers, timeout=120, limits=limits) as http:
                transport = streamable_http_client(self.address, http_client=http)
                async with ProtocolClient(transport, cache=None, **options) as client:
                    return await work(client)

        return anyio.run(run)


@contextmanager
def team_of(context: Context) -> Iterator[Team]:
    listening = open_team_server(context, port=0)
    with serving(listening.application, listening.socket):
        yield Team(listening)
