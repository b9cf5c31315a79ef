"""Serves an explorer on this machine alone until Ctrl-C, or until nobody has looked for a while."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import uvicorn

from cortex.explorer.application import Explorer
from cortex.explorer.safety import AccessGate
from cortex.flows.context.context import Context
from cortex.flows.embedders import Embedder
from cortex.storage.settings.settings import Settings, load_settings
from cortex.transforms.errors import UsageError

LOOPBACK = "127.0.0.1"
# A check of how long ago somebody looked costs nothing; half a minute more or less does not matter.
IDLE_CHECK_SECONDS = 5.0
# What is under way when it ends may finish: a deed is safe to be killed, but need not be.
LAST_ANSWERS_SECONDS = 5


@dataclass(frozen=True)
class Listening:
    """A socket at a port of this machine, and the explorer that answers there."""

    explorer: Explorer
    socket: socket.socket

    @property
    def address(self) -> str:
        """Return the link that opens the explorer, once."""
        return f"{self.explorer.gate.origin}/enter?token={self.explorer.gate.link_token}"


def listen(context: Context, port: int = 0, *, is_read_only: bool = False) -> Listening:
    """Take a port of this machine, a free one for 0. Raises UsageError if it is taken."""
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((LOOPBACK, port))
    except OSError as error:
        place.close()
        raise UsageError(f"Port {port} is taken ({error.strerror}).", "Leave out --port.") from error
    gate = AccessGate(f"{LOOPBACK}:{place.getsockname()[1]}")
    return Listening(Explorer(Contexts(context).open, gate, is_read_only), place)


def serve_pages(listening: Listening, idle_minutes: float, is_up: Callable[[], None]) -> None:
    """Answer until Ctrl-C or `idle_minutes` without a request; `is_up` is called once it answers."""
    asyncio.run(_serve(listening, idle_minutes, is_up))


async def _serve(listening: Listening, idle_minutes: float, is_up: Callable[[], None]) -> None:
    config = uvicorn.Config(
        listening.explorer.application(),
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=LAST_ANSWERS_SECONDS,
    )
    server = uvicorn.Server(config)
    watching = asyncio.create_task(_watch(server, listening.explorer, idle_minutes, is_up))
    try:
        await server.serve(sockets=[listening.socket])
    finally:
        watching.cancel()
        listening.socket.close()


async def _watch(
    server: uvicorn.Server, explorer: Explorer, idle_minutes: float, is_up: Callable[[], None]
) -> None:
    """End the server once nobody has looked for too long."""
    while not server.started:
        await asyncio.sleep(0.02)
    is_up()
    while time.monotonic() - explorer.asked_at < idle_minutes * 60:
        await asyncio.sleep(min(IDLE_CHECK_SECONDS, idle_minutes * 6))
    server.should_exit = True


@dataclass(frozen=True)
class Contexts:
    """Gives the context of each request: settings as they are then, the model loaded once."""

    first: Context
    _models: dict[str | None, Embedder | None] = field(default_factory=dict)

    def open(self) -> Context:
        """Return the context of a request. Raises UsageError if the settings cannot be read."""
        return replace(self.first, settings=load_settings(self.first.home), embedder_of=self._model)

    def _model(self, settings: Settings) -> Embedder | None:
        key = settings.voyage_api_key
        if key not in self._models:
            self._models[key] = self.first.embedder_of(settings)
        return self._models[key]
