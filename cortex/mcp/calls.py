"""From the name of a tool and its arguments to the answer."""

from collections.abc import Callable, Mapping
from typing import Any

from cortex.flows.context import Context
from cortex.mcp.arguments import checked_arguments
from cortex.mcp.asking import Person
from cortex.mcp.call import ToolCall
from cortex.mcp.replies import ToolReply
from cortex.mcp.tools import TOOL_BY_NAME
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
            from cortex.mcp import looking

            return looking.answer_recall if name == "recall" else looking.answer_query
        case "reflect" | "infer":
            from cortex.mcp import reasoning

            return reasoning.answer_reflect if name == "reflect" else reasoning.answer_infer
        case _:
            from cortex.mcp import changing

            return changing.answer_learn if name == "learn" else changing.answer_consolidate
