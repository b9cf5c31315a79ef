"""The assistant's client as a program: where it is, and how it is told to install the plugin."""

import os
import shutil
import subprocess
from pathlib import Path

from cortex.storage.client_files import PLUGIN, launcher

# Where its installers put it, should the PATH of this shell not have it yet.
USUAL_PLACES = (".local/bin/claude", ".claude/local/claude")
# Adding a marketplace and installing take 1 to 3 s each; on a busy machine ten times that.
CLIENT_SECONDS = 120
MAXIMUM_REASON_CHARS = 200


def find_client() -> Path | None:
    """Return the client's command, None where there is none."""
    if command := shutil.which("claude"):
        return Path(command)
    usual = (Path.home() / place for place in USUAL_PLACES)
    return next((path for path in usual if os.access(path, os.X_OK) and path.is_file()), None)


def plugin_folder() -> Path:
    """Return the folder that is the plugin, and a marketplace of it: the hooks as they are installed."""
    return launcher().resolve().parent


def install_plugin(client: Path) -> str | None:
    """Let the client install the plugin of this package for its user; return why not, None if it did."""
    steps = (
        ("plugin", "marketplace", "add", str(plugin_folder())),
        ("plugin", "install", f"{PLUGIN}@{PLUGIN}"),
    )
    environment = {**os.environ, "CORTEX_INTERNAL": "1"}
    for words in steps:
        try:
            done = subprocess.run(
                [client, *words],
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=CLIENT_SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return f"`claude {' '.join(words[:3])}` took over {CLIENT_SECONDS} s"
        except OSError as error:
            return f"{client} cannot be started: {error.strerror or error}"
        if done.returncode:
            reason = " ".join((done.stderr or done.stdout).split())[:MAXIMUM_REASON_CHARS]
            return f"`claude {' '.join(words[:3])}` failed: {reason}"
    return None
