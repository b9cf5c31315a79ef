"""
How a tool is declared: what it is for, what it takes and gives; a model pays for every word of it.

    @tool(
        "query",
        "Query the memory with SQL",
        "Run read-only SQL (DuckDB) on the memory.",
        takes=schemas.takes("sql", sql=schemas.text()),
        gives=schemas.gives(rows=schemas.STRING_LIST),
    )
    def answer_query(call: ToolCall) -> ToolReply: ...

A tool stands in a module of this folder; `make docs` prints the index by which clients list the tools.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cortex.mcp.protocol.call import ToolCall
from cortex.mcp.protocol.replies import ToolReply
from cortex.mcp.protocol.scopes import READ
from cortex.mcp.tools.schemas import Schema

# Behind every other stands a tool that names no place; several are sorted by name.
LAST_LISTED = 1_000

Answering = Callable[[ToolCall], ToolReply]


@dataclass(frozen=True)
class Tool:
    """
    One tool: `takes` and `gives` are the JSON schemas of its arguments and of its structured answer.

    A call needs `scope`, and where it has an argument of `scope_with`, the scope that stands there.
    """

    name: str
    title: str
    purpose: str
    takes: Schema
    gives: Schema
    answer: Answering
    scope: str = READ
    scope_with: Mapping[str, str] = field(default_factory=dict)
    is_destructive: bool = False
    place: int = LAST_LISTED

    def as_dict(self) -> Schema:
        """Return the tool as the protocol lists it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.purpose,
            "inputSchema": self.takes,
            "outputSchema": self.gives,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.scope == READ and not self.scope_with,
                "destructiveHint": self.is_destructive,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }


# By name, of the modules that are imported.
DECLARED: dict[str, Tool] = {}


def tool(
    name: str,
    title: str,
    purpose: str,
    *,
    takes: Schema,
    gives: Schema,
    scope: str = READ,
    scope_with: Mapping[str, str] | None = None,
    is_destructive: bool = False,
    place: int = LAST_LISTED,
) -> Callable[[Answering], Answering]:
    """
    Declare what answers a tool.

    Raises ValueError if another tool has its name, or if a schema is none of an object.
    """

    def declare(answer: Answering) -> Answering:
        if {takes.get("type"), gives.get("type")} != {"object"}:
            raise ValueError(f"the tool '{name}' needs a schema of what it takes, and one of what it gives")
        known = DECLARED.get(name)
        if known and _home_of(known.answer) != _home_of(answer):
            raise ValueError(
                f"{_home_of(known.answer)} and {_home_of(answer)} both declare the tool '{name}'"
            )
        DECLARED[name] = Tool(
            name, title, purpose, takes, gives, answer, scope, dict(scope_with or {}), is_destructive, place
        )
        return answer

    return declare


def _home_of(answer: Answering) -> str:
    return f"{answer.__module__}.{answer.__qualname__}"
