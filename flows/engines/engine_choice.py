"""Which engine runs the stages: Prefect where a server of it answers, plain elsewhere."""

import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from cortex.storage.machine.prefect_server import PrefectServer, server_set_up
from cortex.transforms.errors import UnknownValue

AUTO, PREFECT, PLAIN = "auto", "prefect", "plain"
ENGINES = (AUTO, PREFECT, PLAIN)

# A server that was set up answers in milliseconds, one across the world in less than this.
ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class EngineChoice:
    """
    The engine of a run: `prefect` or `plain`; `note` says why where a person may not expect it.

    `server` is the one that answers; under Prefect without one a temporary one is started.
    """

    engine: str
    server: PrefectServer | None = None
    note: str = ""


def engine_for(wanted: str, home: Path) -> EngineChoice:
    """Return the engine that `wanted` (one of ENGINES) means here and now. Raises UnknownValue."""
    if wanted not in ENGINES:
        raise UnknownValue("engine", wanted, ENGINES)
    server = server_set_up(home) if wanted != PLAIN else None
    if wanted == PLAIN or (server is None and wanted == AUTO):
        return EngineChoice(PLAIN)
    if server is None:
        return EngineChoice(PREFECT)
    if answers(server.url):
        return EngineChoice(PREFECT, server)
    if server.source == "cortex serve":  # it was killed, and could not take its note back
        return EngineChoice(PREFECT if wanted == PREFECT else PLAIN)
    note = f"Prefect's server at {server.url} ({server.source}) does not answer: the stages ran without it."
    return EngineChoice(PLAIN, note=note)


def answers(url: str) -> bool:
    """Return whether a Prefect API answers at `url`; one that wants a login answers too."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=ANSWER_SECONDS):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False


def prepare(choice: EngineChoice) -> None:
    """Give Prefect what it is to know of the server; the environment's own word counts."""
    for name, value in choice.server.settings.items() if choice.server else ():
        os.environ.setdefault(name, value)
