"""From the name of a tool and its arguments to the answer."""

import importlib
from collections.abc import Mapping
from typing import Any

from cortex.flows.context.context import Context
from cortex.mcp.protocol.call import ToolCall
from cortex.mcp.protocol.questions import Person
from cortex.mcp.protocol.replies import ToolReply
from cortex.mcp.tool_index import MODULES_OF_TOOLS
from cortex.mcp.tools.arguments import checked_arguments
from cortex.mcp.tools.tool import DECLARED, Tool
from cortex.transforms.errors import UnknownTool


def call_tool(context: Context, name: str, arguments: Mapping[str, Any] | None, person: Person) -> ToolReply:
    """
    Call a tool for a caller that sees what its context shows.

    Raises UnknownTool and the errors of `checked_arguments` and of the operation; ChoiceNeeded where a person
    has to answer first.
    """
    if name not in MODULES_OF_TOOLS:
        raise UnknownTool(
            f"There is no tool '{name[:40]}'.", f"The tools: {', '.join(MODULES_OF_TOOLS)}.", "name"
        )
    tool = declared_tool(name)
    return tool.answer(ToolCall(context, checked_arguments(tool, arguments), person))


def declared_tool(name: str) -> Tool:
    """Return a tool of the index; its module is imported here, since who only searches needs no other."""
    importlib.import_module(MODULES_OF_TOOLS[name])
    return DECLARED[name]
