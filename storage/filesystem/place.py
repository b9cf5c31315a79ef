"""Where the store is: CORTEX_HOME, or this machine's copy of a store elsewhere and its note `remote.json`."""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Protocol

from cortex.hooks.home import COPIES, copy_of
from cortex.storage.filesystem.files import write_stored
from cortex.transforms.errors import StoreBusy, UsageError

# In a folder that is a copy of a store elsewhere.
NOTE_FILE = "remote.json"

# Longest URI after the scheme: a file name holds 255 bytes.
MAX_URI_CHARS = 200


class OpenSession(Protocol):
    """A store elsewhere whose lease this process holds."""

    def push(self, lake_files: Iterable[str], key_id: str | None, manifest: bytes) -> None:
        """
        Commit a manifest there: its bytes, the lake files that it names, the key that seals what is shared.

        Raises LeaseLost and StoreUnreachable.
        """


_open: dict[Path, OpenSession] = {}


def store_home() -> Path:
    """
    Return the store's folder: `CORTEX_HOME`, else `~/.cortex`; for a URI this machine's copy of that store.

    Raises UsageError for what is not the place of a store.
    """
    named = os.environ.get("CORTEX_HOME")
    if named and "://" in named:
        check_uri(named)
        begin_copy(Path(copy_of(named)), named)
        return Path(copy_of(named))
    return Path(named).expanduser().absolute() if named else Path.home() / ".cortex"


@dataclass(frozen=True)
class RemoteNote:
    """
    `uri` is the store's place and `copy` the id of this machine's copy.

    `number` is the entry of the log that this copy has taken in (0: none yet), `tree` the state that it
    named; `origin` is the nonce of the log's first entry: another is another store.
    """

    uri: str
    copy: str
    number: int = 0
    tree: str = ""
    origin: str = ""


def remote_note(home: Path) -> RemoteNote | None:
    """Return what a folder is a copy of, None for a store of its own. Raises UsageError for a damaged one."""
    try:
        return RemoteNote(**json.loads((home / NOTE_FILE).read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"{home / NOTE_FILE} is damaged.",
            "Remove it, and name the store again: CORTEX_HOME=s3://BUCKET/PREFIX",
        ) from error


def begin_copy(home: Path, uri: str) -> RemoteNote:
    """Make `home` a copy of the store at `uri`, unless it is; nothing is asked there. Raises UsageError."""
    note = remote_note(home)
    if note is None:
        note = RemoteNote(uri, os.urandom(8).hex())
        keep_note(home, note)
    if note.uri.rstrip("/") != uri.rstrip("/"):
        raise UsageError(
            f"{home} is the copy of {note.uri}, not of {uri}.", "Name the store in the same way."
        )
    return note


def keep_note(home: Path, note: RemoteNote) -> None:
    """Write the note."""
    write_stored(home, home / NOTE_FILE, json.dumps(asdict(note), indent=1).encode())


def check_uri(uri: str) -> None:
    """Raise UsageError for what is not the URI of a store; its copy lies in a folder named after it."""
    scheme, mark, rest = uri.partition("://")
    parts = rest.strip("/").split("/")
    is_plain = all(part not in ("", ".", "..") and part.isprintable() for part in parts)
    is_known = mark and (scheme == "s3" or (scheme == "file" and rest.startswith("/")))
    if not is_known or not is_plain or len(uri) > MAX_URI_CHARS or any(mark in uri for mark in "+?#\\"):
        raise UsageError(
            f"CORTEX_HOME is {uri!r}, which is not the place of a store.",
            "Name a folder, s3://BUCKET/PREFIX, or file:///FOLDER for one that machines share "
            f"(this machine's copy is then below ~/{COPIES}).",
        )


def is_copy(home: Path) -> bool:
    """Return whether the folder `home` is a copy of a store elsewhere."""
    return (home / NOTE_FILE).is_file()


def opened_session(home: Path, session: OpenSession) -> None:
    """Let the commits to the store in `home` go through `session`."""
    _open[home.resolve()] = session


def closed_session(home: Path) -> None:
    """Let no commit to the store in `home` through any more."""
    _open.pop(home.resolve(), None)


def commit_elsewhere(home: Path, lake_files: Iterable[str], key_id: str | None, manifest: bytes) -> None:
    """
    Commit a manifest to where the store of `home` is; nothing for a store that is the folder itself.

    Raises LeaseLost and StoreUnreachable: the folder's own manifest then stays as it was.
    """
    if not is_copy(home):
        return
    session = _open.get(home.resolve())
    if session is None:
        raise StoreBusy(f"{home} is a copy of a store elsewhere, whose lease is not held.", "Run it again.")
    session.push(lake_files, key_id, manifest)


def install_extra(extra: str, prefix: str = sys.prefix, origin: str | None = None) -> str:
    """
    Return the next step where an extra is missing, by how this program was installed, and from where.

    >>> install_extra("s3", "/home/ada/.local/share/uv/tools/cortex-lake", "")
    "In your clone of Cortex: uv tool install --constraints constraints.txt '.[s3]'"
    >>> install_extra("s3", "/home/ada/.local/share/uv/tools/cortex-lake", "index")
    "Run: uv tool install 'cortex-lake[locked,s3]'"
    >>> install_extra("s3", "/home/ada/.local/share/cortex-lake", "")
    'In your clone of Cortex: make install EXTRAS=s3'
    >>> install_extra("s3", "/home/ada/src/app/.venv", "git+https://example.org/cortex")
    "Run: /home/ada/src/app/.venv/bin/python -m pip install 'cortex-lake[s3] @ git+https://example.org/cortex'"
    """
    origin = _origin() if origin is None else origin
    if origin:
        wanted = f"cortex-lake[locked,{extra}]" if origin == "index" else f"cortex-lake[{extra}] @ {origin}"
        with_uv, with_pipx = f"uv tool install '{wanted}'", f"pipx install --force '{wanted}'"
        otherwise = f"{prefix}/bin/python -m pip install '{wanted}'"
    else:
        with_uv = f"uv tool install --constraints constraints.txt '.[{extra}]'"
        with_pipx = f"pipx install --force --pip-args='-c constraints.txt' '.[{extra}]'"
        otherwise = f"make install EXTRAS={extra}"
        if prefix.endswith("/.venv"):
            otherwise = f".venv/bin/python -m pip install -c constraints.txt '.[{extra}]'"
    line = with_uv if "/uv/tools/" in prefix else with_pipx if "/pipx/venvs/" in prefix else otherwise
    return f"Run: {line}" if origin else f"In your clone of Cortex: {line}"


def _origin() -> str:
    """Return `index`, the address that the program was installed from, or "" for a clone (PEP 610)."""
    try:
        noted = distribution("cortex-lake").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    if noted is None:
        return "index"
    note = json.loads(noted)
    if "dir_info" in note:
        return ""
    return f"{note['vcs_info']['vcs']}+{note['url']}" if "vcs_info" in note else str(note["url"])


# A part of the path of its Python, and what removes the program.
INSTALLED_BY = (
    ("/uv/tools/", "uv tool uninstall cortex-lake"),
    ("/pipx/venvs/", "pipx uninstall cortex-lake"),
    ("/share/cortex-lake", "rm -r ~/.local/share/cortex-lake ~/.local/bin/cortex"),
)


def removal_of_program(prefix: str = sys.prefix) -> str:
    """
    Return the command that removes this program, by how it was installed.

    >>> removal_of_program("/home/ada/.local/share/uv/tools/cortex-lake")
    'uv tool uninstall cortex-lake'
    >>> removal_of_program("/home/ada/src/cortex/.venv")
    'rm -r /home/ada/src/cortex/.venv'
    """
    return next((removal for part, removal in INSTALLED_BY if part in prefix), f"rm -r {prefix}")
