"""The command `serve`: Prefect's own pages over the history of this store's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import hint

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("serve", "Show the history of runs in Prefect's pages.", place=120, json=False)
@click.option("--port", default=4200, show_default=True, type=click.IntRange(1, 65_535), help="Port.")
@click.option("--cron", default="30 3 * * *", show_default=True, help="When the nightly run starts, UTC.")
def serve(context: Context, port: int, cron: str) -> Answer:
    """Show the history of runs in Prefect's pages and serve the flows, on this machine alone, until Ctrl-C.

    Meanwhile, runs go through this server and appear there, and the nightly run starts by itself; nothing
    stays when it ends.
    """

    from cortex.flows.operations.care import serve

    def tell(address: str) -> None:
        hint(f"Prefect's pages over the runs of {context.home}: {address} (ready in about 10 s; Ctrl-C ends)")

    return Answer({}, exit_code=serve.serve(context, port, tell, cron))
