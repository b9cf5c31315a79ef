"""The assistant's client as a program: where it is, how it is asked to install the plugin or start tools."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from cortex.storage.staging.client_files import PLUGIN, launcher

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
