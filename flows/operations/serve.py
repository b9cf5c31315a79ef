"""Starts Prefect's server over the history of this store's runs, for as long as a person wants to look."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

from cortex.flows.context import Context
from cortex.flows.engine_choice import answers
from cortex.flows.engines import configure_prefect
from cortex.storage.prefect_server import forget_serving, note_serving
from cortex.transforms.errors import UsageError

HOST = "127.0.0.1"
DEFAULT_PORT = 4200

# Ctrl-C, a service manager, a terminal that is closed: the server ends with each.
ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(context: Context, port: int, is_up: Callable[[str], None]) -> int:
    """
    Run Prefect's server on this machine alone until it ends; return its exit code.

    While it runs, runs with the engine `auto` go through it. `is_up` is called with the address before it
    starts. Raises UsageError where something answers at the port already, StoreNotWritable.
    """
    address = f"http://{HOST}:{port}"
    if answers(f"{address}/api"):
        raise UsageError(f"a Prefect server answers at {address} already.", "Look there, or give --port.")
    configure_prefect(context.home)
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    environment = {**os.environ, "PREFECT_API_URL": f"{address}/api"}
    note_serving(context.home, f"{address}/api")
    is_up(address)
    for ended in ENDED_BY:
        signal.signal(ended, _interrupt)
    try:
        with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as server:
            try:
                return server.wait()
            except KeyboardInterrupt:
                server.terminate()
                server.wait()
                return 0
    finally:
        forget_serving(context.home)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
