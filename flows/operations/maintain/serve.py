"""Starts Prefect's server over the history of the store's runs, and serves the flows, until it is ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType

from cortex.flows.context import Context
from cortex.flows.engines.runs import answers, configure_prefect
from cortex.storage.machine.prefect_server import forget_serving, note_serving
from cortex.transforms.errors import UsageError

HOST = "127.0.0.1"

# As `cortex schedule`, but by the server's clock: 03:30 UTC.
DEFAULT_CRON = "30 3 * * *"

# Imported and not run with `-m`: Prefect starts a flow by the name of its module.
_SERVING = "import sys; from cortex.flows.prefect_flows import serve_flows; serve_flows(*sys.argv[1:])"

# How often is looked whether the server has started; it takes about 10 s.
SERVER_LOOK_SECONDS = 0.5

# Ctrl-C, a service manager, a terminal that is closed: the server ends with each.
ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(context: Context, port: int, is_up: Callable[[str], None], cron: str = DEFAULT_CRON) -> int:
    """
    Run Prefect's server on this machine alone until it ends, and serve the flows; return its exit code.

    While it runs, runs with the engine `auto` go through it, flows can be started in its pages, and the
    nightly run starts whenever `cron` says (in UTC). `is_up` is called with the address before it
    starts. Raises UsageError if something answers at the port already, StoreNotWritable.
    """
    address = f"http://{HOST}:{port}"
    if answers(f"{address}/api"):
        raise UsageError(f"a Prefect server answers at {address} already.", "Look there, or give --port.")
    configure_prefect(context.home)
    command = [sys.executable, "-P", "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    environment = {**os.environ, "PREFECT_API_URL": f"{address}/api"}
    note_serving(context.home, f"{address}/api")
    is_up(address)
    for ended in ENDED_BY:
        signal.signal(ended, _interrupt)
    try:
        with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as server:
            try:
                return _serve_flows(context, server, environment, cron)
            except KeyboardInterrupt:
                server.terminate()
                server.wait()
                return 0
    finally:
        forget_serving(context.home)


def _serve_flows(context: Context, server: subprocess.Popen[bytes], env: dict[str, str], cron: str) -> int:
    """Serve the flows once the server answers, until it ends; return its exit code."""
    while server.poll() is None and not answers(env["PREFECT_API_URL"]):
        time.sleep(SERVER_LOOK_SECONDS)
    if server.poll() is None:
        command = [sys.executable, "-P", "-c", _SERVING, str(context.home), cron]
        with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL) as flows:
            try:
                return server.wait()
            finally:
                flows.terminate()
    return server.wait()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
