"""The command `mcp`: the memory for programs that speak the Model Context Protocol."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cortex.cli.answer import command
from cortex.transforms.errors import ExtraMissing

if TYPE_CHECKING:
    from cortex.flows.context import Context


@command("mcp", json=False)
def mcp(context: Context) -> None:
    """Serve the memory of this folder's project over the Model Context Protocol (standard input and output).

    Started by an assistant's client, and ended with it. The client sees the project of the folder it starts
    this in and what holds everywhere; the setting mcp.projects adds others.
    """
    if find_spec("mcp") is None:
        raise ExtraMissing(
            "the package for the Model Context Protocol is not installed.",
            "Install it beside Cortex: pip install 'cortex-lake[mcp]'",
        )
    from cortex.mcp.client import Client
    from cortex.mcp.server import serve_stdio

    serve_stdio(Client(context))
