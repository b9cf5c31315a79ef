"""The assistant's client as a program: where it is, how it installs, an empty folder to run it in."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cortex.storage.filesystem.files import writing_to
from cortex.storage.staging.client_files import PLUGIN, launcher
from cortex.transforms.errors import StoreBusy

# Where its installers put it, should the PATH of this shell not have it yet.
USUAL_PLACES = (".local/bin/claude", ".claude/local/claude")
# Adding a marketplace and installing take 1 to 3 s each; on a busy machine ten times that.
CLIENT_SECONDS = 120
MAXIMUM_REASON_CHARS = 200
# What the server of the tools is called in the client.
SERVER = "cortex"


def find_client() -> Path | None:
    """Return the client's command, None if there is none."""
    if command := shutil.which("claude"):
        return Path(command)
    usual = (Path.home() / place for place in USUAL_PLACES)
    return next((path for path in usual if os.access(path, os.X_OK) and path.is_file()), None)


def plugin_folder() -> Path:
    """Return the folder that is the plugin, and a marketplace of it: the hooks as they are installed."""
    return launcher().resolve().parent


def install_plugin(client: Path) -> str | None:
    """Let the client install the plugin of this package for its user; return why not, None if it did."""
    return _call(client, "plugin", "marketplace", "add", str(plugin_folder())) or _call(
        client, "plugin", "install", f"{PLUGIN}@{PLUGIN}"
    )


def remove_plugin(client: Path) -> str | None:
    """Let the client remove the plugin and its marketplace; return why not, None if it did."""
    return _call(client, "plugin", "uninstall", f"{PLUGIN}@{PLUGIN}") or _call(
        client, "plugin", "marketplace", "remove", PLUGIN
    )


def remove_tools(client: Path) -> str | None:
    """Let the client's user no longer start the memory's tools; return why it still does, None if not."""
    return _call(client, "mcp", "remove", "--scope", "user", SERVER)


def has_tools() -> bool:
    """Return whether the client's user starts the memory's tools in addition to the plugin."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    path = (Path(folder) if folder else Path.home()) / ".claude.json"
    try:
        servers = json.loads(path.read_bytes())["mcpServers"]
        return SERVER in servers
    except (OSError, ValueError, KeyError, TypeError):
        return False


def add_tools(client: Path, engine: Path) -> str | None:
    """Let the client start the memory's tools for its user; return why not, None if it will."""
    return _call(client, "mcp", "add", "--scope", "user", SERVER, "--", str(engine), "mcp")


def _call(client: Path, *words: str) -> str | None:
    """Call the client's command; return why it failed, None if it did not."""
    name = f"`claude {' '.join(words[:3])}`"
    try:
        done = subprocess.run(
            [client, *words],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=CLIENT_SECONDS,
            env={**os.environ, "CORTEX_INTERNAL": "1"},
        )
    except subprocess.TimeoutExpired:
        return f"{name} took over {CLIENT_SECONDS} s"
    except OSError as error:
        return f"{client} cannot be started: {error.strerror or error}"
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split())[:MAXIMUM_REASON_CHARS]
        return f"{name} failed: {reason}"
    return None


# -- An empty folder outside the store for a program that is to see nothing of the person's, gone
# afterwards.

PREFIX = "cortex-scratch-"
# What a killed run left; a program that is asked one thing is done long before.
LEFT_AFTER_S = 3_600
# The one before takes at most as long as one answer.
TURN_WAIT_S = 150.0


@dataclass(frozen=True)
class Scratch:
    """Empty folders: where the program starts, its home, its settings, its temporary files."""

    work: Path
    home: Path
    config: Path
    tmp: Path


@contextmanager
def scratch(home: Path) -> Iterator[Scratch]:
    """
    Yield empty folders while no other process of the store at `home` has some; remove them afterwards.

    Raises StoreBusy if another one goes on for longer than an answer takes.
    """
    from filelock import FileLock, Timeout

    with writing_to(home):
        (home / "runs").mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(home / "runs" / "scratch.lock", timeout=TURN_WAIT_S):
            _sweep()
            with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
                place = Scratch(*(Path(folder) / name for name in ("work", "home", "config", "tmp")))
                for path in (place.work, place.home, place.config, place.tmp):
                    path.mkdir(mode=0o700)
                yield place
    except Timeout as error:
        raise StoreBusy("another run is asking the language model.", "Try again in a minute.") from error


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > LEFT_AFTER_S and folder.owner() == Path.home().owner():
                shutil.rmtree(folder, ignore_errors=True)
