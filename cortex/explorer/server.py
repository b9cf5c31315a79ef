"""The explorer served on this machine alone until nobody looks any more, or written as files, read-only."""

import asyncio
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import uvicorn

from cortex.explorer.application import JSON_ENDING, AccessGate, Explorer
from cortex.explorer.views import STATIC_TYPES
from cortex.flows.context import Context
from cortex.flows.embedders import Embedder
from cortex.storage.filesystem.files import is_empty_folder, write_below
from cortex.storage.settings.settings import Settings, load_settings
from cortex.transforms.errors import UsageError

# -- Serves an explorer on this machine alone until Ctrl-C, or until nobody has looked for a while.

LOOPBACK = "127.0.0.1"
# A check of how long ago somebody looked costs nothing; half a minute more or less does not matter.
IDLE_CHECK_SECONDS = 5.0
# What is under way when it ends may finish: an action is safe to be killed, but need not be.
GRACEFUL_SHUTDOWN_SECONDS = 5


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
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
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


# -- The pages of a store as files, to be opened without a server: the same pages, read-only.

# Where the crawl begins: the bar's pages; SQL and settings are for asking, which files cannot answer.
STARTS = ("/", "/search", "/timeline", "/review", "/runs", "/costs", "/health")
# A page that these lead to is asked for by words or choices without end; what a list shows is followed.
_FOLLOWED = re.compile(
    r"/(?:|brief/[^/?]+|memory/[0-9a-f]+|session/[^/?]+|runs/[^/?]+|search(?:\?page=\d+)?"
    r"|timeline(?:\?(?:in=[\d-]+)?(?:&?page=\d+)?)?|review(?:\?project=[^&]+)?|runs(?:\?page=\d+)?|costs|health)"
)
_LINK = re.compile(r'(href|src)="(/[^"]*)"')
_SERVED = re.compile(r"<form\b.*?</form>", re.DOTALL)
_FOOT = re.compile(r'<(a|span) class="(?:keys )?served".*?</\1>', re.DOTALL)
# In the bar, a page that is for asking and so is not among the files.
_NOT_WRITTEN = re.compile(r'<li><a aria-disabled="true">[^<>]{1,40}</a></li>\s*')
_SCRIPT = re.compile(r"<script[^>]*></script>\s*")


@dataclass(frozen=True)
class Exported:
    """What was written: pages and bytes, and whether there were more than `most`."""

    folder: Path
    pages: int
    bytes: int
    is_cut: bool


def export_pages(context: Context, folder: Path, *, most: int = 10_000) -> Exported:
    """
    Write the pages below `folder`, at most `most` of them; `index.html` is the brief.

    Raises UsageError for a folder with something in it, and if the disk refuses.
    """
    if not is_empty_folder(folder):
        raise UsageError(f"{folder} is not an empty folder.", "Name a new one.")
    explorer = Explorer(lambda: context, AccessGate("127.0.0.1:0"), is_read_only=True)
    size = 0
    try:
        for name in STATIC_TYPES:
            content = (files("cortex.explorer") / "static" / name).read_bytes()
            write_below(folder, f"static/{name}", content)
            size += len(content)
        waiting, known = list(STARTS), set(STARTS)
        for number, address in enumerate(waiting):
            if number >= most:
                break
            html = explorer.render_address(address)
            for link in _links(html):
                if link not in known:
                    known.add(link)
                    waiting.append(link)
            content = _relative(html, address, known).encode()
            write_below(folder, page_file_of(address), content)
            size += len(content)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}).", "Name another one.") from error
    return Exported(folder, min(len(waiting), most), size, len(waiting) > most)


def page_file_of(address: str) -> str:
    """
    Return the file of a page, below the folder.

    >>> page_file_of("/"), page_file_of("/memory/ab12"), page_file_of("/search?page=2")
    ('index.html', 'memory/ab12.html', 'search-page-2.html')
    """
    path, _, query = address.partition("?")
    name = f"{path.strip('/')}?{query}" if query else path.strip("/")
    return (
        re.sub(r"[^A-Za-z0-9._/-]+", "-", unquote(name)).replace("..", "-") + ".html"
        if name
        else "index.html"
    )


def _links(html: str) -> Iterator[str]:
    for match in _LINK.finditer(_SERVED.sub("", html)):
        address = unescape(match[2]).partition("#")[0]
        if _FOLLOWED.fullmatch(address) and not address.endswith(JSON_ENDING):
            yield address


def _relative(html: str, address: str, known: set[str]) -> str:
    """Return a page with links to the files next to it; a link to a page that is not written goes nowhere."""
    up = "../" * page_file_of(address).count("/")

    def changed(match: re.Match[str]) -> str:
        target = unescape(match[2]).partition("#")[0]
        if target.startswith("/static/"):
            return f'{match[1]}="{up}{target[1:]}"'
        return (
            f'{match[1]}="{escape(up + page_file_of(target))}"' if target in known else 'aria-disabled="true"'
        )

    linked = _LINK.sub(changed, _SCRIPT.sub("", _FOOT.sub("", _SERVED.sub("", html))))
    return _NOT_WRITTEN.sub("", linked)
