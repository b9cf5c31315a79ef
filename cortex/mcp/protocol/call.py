"""One call of a tool: what it is given, and what the tools share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cortex.flows.context.context import Context
from cortex.mcp.protocol.questions import Person


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool: the context of its caller, the arguments as they were checked, the person there."""

    context: Context
    arguments: Mapping[str, Any]
    person: Person = field(default_factory=Person)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, `default` if it was not given."""
        return self.arguments.get(name, default)

    def number(self, name: str) -> int:
        """Return a threshold of the policy as a whole number."""
        return int(self.context.policy.threshold(name))

    @property
    def has_project(self) -> bool:
        """Whether the caller is in a project's folder: one over HTTP may see none."""
        return self.context.folder != self.context.home

    @property
    def chars(self) -> int:
        """The most characters of an answer."""
        return self.number("mcp_text_chars")

    @property
    def excerpt(self) -> int:
        """The most characters of one memory on a list."""
        return self.number("mcp_excerpt_chars")
