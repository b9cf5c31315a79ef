"""The command `serve`: Prefect's own pages over the history of this store's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import hint

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("serve", "Serve the flows with Prefect, and its page of past runs.", place=120, json=False)
@click.option("--port", default=4200, show_default=True, type=click.IntRange(1, 65_535), help="Port.")
@click.option("--cron", default="30 3 * * *", show_default=True, help="Start of the nightly run, in UTC.")
def serve(context: Context, port: int, cron: str) -> Answer:
    """Serve the flows with Prefect, and its page of past runs, on this machine alone, until Ctrl-C.

    While it runs, all runs go through this server and appear on its page, and the nightly run is started on
    time. Nothing keeps running after it ends.
    """

    from cortex.flows.operations.care import serve

    def tell(address: str) -> None:
        hint(f"Prefect's pages over the runs of {context.home}: {address} (ready in about 10 s; Ctrl-C ends)")

    return Answer({}, exit_code=serve.serve(context, port, tell, cron))
