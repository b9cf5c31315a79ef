"""The command `mcp`: the memory for programs that speak the Model Context Protocol."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import command
from cortex.cli.terminal import hint

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


# Set by Claude Code for what it starts.
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


@command("mcp", "Serve the memory to programs that speak MCP.", place=50, json=False)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Project folder. Default: the folder in which the client starts this.",
)
@click.option("--http", "over_http", is_flag=True, help="Serve a team over HTTP, with OAuth 2, until Ctrl-C.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: address to listen on.")
@click.option(
    "--port",
    default=8377,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="With --http: port to listen on.",
)
def mcp(context: Context, folder: Path | None, over_http: bool, host: str, port: int) -> None:
    """Serve the memory of this folder's project over the Model Context Protocol (standard input and output).

    An assistant's client starts and stops it. The client sees the project of the folder it starts this in,
    and global memories; the setting mcp.projects adds more. With --http it serves callers with a token from
    the identity provider mcp.issuer; the setting mcp.http_projects says what they see.
    """
    if over_http:
        _serve_team(context, host, port)
        return
    from cortex.mcp.protocol.loading import quick_imports

    with quick_imports():
        from cortex.mcp.protocol.client import Client
        from cortex.mcp.server import serve_stdio

    named = os.environ.get(PROJECT_VARIABLE)
    place = folder or (Path(named) if named and Path(named).is_dir() else context.folder)
    serve_stdio(Client(replace(context, folder=place.absolute())))


def _serve_team(context: Context, host: str, port: int) -> None:
    from cortex.mcp.http.http_server import open_team_server, serve_http

    context.open_store()  # an error is better said here than to callers
    listening = open_team_server(context, host, port)

    def is_up() -> None:
        hint(f"The memory's tools: {listening.address}, for tokens of {context.settings.mcp.issuer}.")
        hint("Ctrl-C ends it.")

    with suppress(KeyboardInterrupt):
        serve_http(listening, is_up)
