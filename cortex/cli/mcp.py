"""The command `mcp`: the memory for programs that speak the Model Context Protocol."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import command

if TYPE_CHECKING:
    from cortex.flows.context import Context


# Set by Claude Code for what it starts.
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


@command("mcp", json=False)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="The project's folder; default: the one that the client starts this in.",
)
def mcp(context: Context, folder: Path | None) -> None:
    """Serve the memory of this folder's project over the Model Context Protocol (standard input and output).

    Started by an assistant's client, and ended with it. The client sees the project of the folder it starts
    this in and what holds everywhere; the setting mcp.projects adds others.
    """
    from cortex.mcp.client import Client
    from cortex.mcp.server import serve_stdio

    named = os.environ.get(PROJECT_VARIABLE)
    place = folder or (Path(named) if named and Path(named).is_dir() else context.folder)
    serve_stdio(Client(replace(context, folder=place.absolute())))
