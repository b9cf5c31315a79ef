"""From the name of a tool and its arguments to the answer."""

from collections.abc import Callable, Mapping
from typing import Any

from cortex.flows.context import Context
from cortex.mcp import changing, looking, reasoning
from cortex.mcp.arguments import checked_arguments
from cortex.mcp.asking import Person
from cortex.mcp.call import ToolCall
from cortex.mcp.replies import ToolReply
from cortex.mcp.tools import TOOL_BY_NAME
from cortex.transforms.errors import UnknownTool

ANSWERING: Mapping[str, Callable[[ToolCall], ToolReply]] = {
    "recall": looking.answer_recall,
    "query": looking.answer_query,
    "reflect": reasoning.answer_reflect,
    "infer": reasoning.answer_infer,
    "learn": changing.answer_learn,
    "consolidate": changing.answer_consolidate,
}


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
    return ANSWERING[name](ToolCall(context, checked_arguments(tool, arguments), person))
