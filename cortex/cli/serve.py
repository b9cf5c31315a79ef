"""The command `serve`: Prefect's own pages over the history of this store's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import hint
from cortex.flows import operations

if TYPE_CHECKING:
    from cortex.flows.context import Context


@command("serve", json=False)
@click.option("--port", default=4200, show_default=True, type=click.IntRange(1, 65_535), help="Port.")
def serve(context: Context, port: int) -> Answer:
    """Show the history of runs in Prefect's pages, on this machine alone, until Ctrl-C.

    Meanwhile, runs go through this server and appear there; nothing stays when it ends.
    """

    def tell(address: str) -> None:
        hint(f"Prefect's pages over the runs of {context.home}: {address} (ready in about 10 s; Ctrl-C ends)")

    return Answer({}, exit_code=operations.serve.serve(context, port, tell))
