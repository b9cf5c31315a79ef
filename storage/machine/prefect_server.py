"""Which Prefect server a person has set up: in the environment, in Prefect's profile, by `cortex serve`."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cortex.storage.filesystem.files import write_stored

URL = "PREFECT_API_URL"
# What a profile may say of the way to its server; nothing else of it is taken over.
TAKEN_OVER = (URL, "PREFECT_API_KEY", "PREFECT_API_AUTH_STRING", "PREFECT_API_TLS_INSECURE_SKIP_VERIFY")


@dataclass(frozen=True)
class PrefectServer:
    """A server that somebody set up: its API's address, where that is said, and Prefect's settings for it."""

    url: str
    source: str
    settings: Mapping[str, str]


def server_set_up(home: Path) -> PrefectServer | None:
    """Return the server of the environment, else of Prefect's active profile, else of `cortex serve`."""
    if url := os.environ.get(URL):
        return PrefectServer(url, URL, {})
    if settings := _active_profile():
        return PrefectServer(settings[URL], "Prefect's profile", settings)
    url = _served_at(home)
    return PrefectServer(url, "cortex serve", {URL: url}) if url else None


def note_serving(home: Path, url: str) -> None:
    """Note the address at which `cortex serve` answers. Raises StoreNotWritable."""
    write_stored(home, _mark(home), json.dumps({"url": url, "pid": os.getpid()}).encode())


def forget_serving(home: Path) -> None:
    """Remove the note."""
    _mark(home).unlink(missing_ok=True)


def _mark(home: Path) -> Path:
    return home / "runs" / "serve.json"


def _served_at(home: Path) -> str | None:
    try:
        mark = json.loads(_mark(home).read_bytes())
    except (OSError, ValueError):
        return None
    url = mark.get("url") if isinstance(mark, dict) else None
    return url if isinstance(url, str) and url.startswith("http://127.0.0.1:") else None


def _active_profile() -> dict[str, str]:
    """Return the active profile's settings for a server; {} where it names none."""
    folder = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    try:
        document = tomllib.loads((folder / "profiles.toml").read_text(encoding="utf-8"))
        name = os.environ.get("PREFECT_PROFILE") or document["active"]
        profile = document["profiles"][name]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if not isinstance(profile, dict) or not isinstance(profile.get(URL), str):
        return {}
    return {key: str(profile[key]) for key in TAKEN_OVER if key in profile}
