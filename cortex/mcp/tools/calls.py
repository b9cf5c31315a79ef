"""From the name of a tool and its arguments to the answer."""

from collections.abc import Callable, Mapping
from typing import Any

from cortex.flows.context.context import Context
from cortex.mcp.protocol.call import ToolCall
from cortex.mcp.protocol.questions import Person
from cortex.mcp.protocol.replies import ToolReply
from cortex.mcp.tools.arguments import checked_arguments
from cortex.mcp.tools.schemas import TOOL_BY_NAME
from cortex.transforms.errors import UnknownTool


def call_tool(context: Context, name: str, arguments: Mapping[str, Any] | None, person: Person) -> ToolReply:
    """
    Call a tool for a caller that sees what its context shows.

    Raises UnknownTool and the errors of `checked_arguments` and of the operation; ChoiceNeeded where a person
    has to answer first.
    """
    tool = TOOL_BY_NAME.get(name)
    if tool is None:
        raise UnknownTool(
            f"There is no tool '{name[:40]}'.", f"The tools: {', '.join(TOOL_BY_NAME)}.", "name"
        )
    return _answering(name)(ToolCall(context, checked_arguments(tool, arguments), person))


def _answering(name: str) -> Callable[[ToolCall], ToolReply]:
    """Return what answers a tool: imported here, since who only searches needs nothing of what writes."""
    match name:
        case "recall" | "query":
            from cortex.mcp.tools import read_tools

            return read_tools.answer_recall if name == "recall" else read_tools.answer_query
        case "reflect" | "infer":
            from cortex.mcp.tools import reasoning_tools

            return reasoning_tools.answer_reflect if name == "reflect" else reasoning_tools.answer_infer
        case _:
            from cortex.mcp.tools import write_tools

            return write_tools.answer_learn if name == "learn" else write_tools.answer_consolidate
