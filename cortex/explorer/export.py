"""The pages of a store as files, to be opened without a server: the same pages, read-only."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

from cortex.explorer.application import JSON_ENDING, Explorer
from cortex.explorer.safety import AccessGate
from cortex.explorer.views import STATIC_TYPES
from cortex.flows.context.context import Context
from cortex.storage.ground.files import is_empty_folder, write_below
from cortex.transforms.errors import UsageError

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
            html = explorer.written_out(address)
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
