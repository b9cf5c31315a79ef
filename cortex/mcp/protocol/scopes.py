"""What a token must allow for a request: reading, writing, taking out, or everything."""

from collections.abc import Iterable, Mapping
from typing import Any

from cortex.mcp.tool_index import SCOPES_OF_TOOLS

READ, WRITE, DELETE, ADMIN = "memory:read", "memory:write", "memory:delete", "admin"
SCOPES = (READ, WRITE, DELETE, ADMIN)

# Methods that show stored words without calling a tool; the lists are the same for everybody.
_READING = ("resources/read", "completion/complete")


def needed_scope(method: str, name: str = "", arguments: Mapping[str, Any] | None = None) -> str:
    """
    Return the scope that a request needs, "" where any caller may ask; `name` and `arguments` are a tool's.

    Carrying out a plan of merges takes memories out of what is shown, so it needs more than learning.

    >>> needed_scope("tools/call", "consolidate"), needed_scope("tools/call", "consolidate", {"plan": "1f"})
    ('memory:read', 'memory:delete')
    """
    if method in _READING:
        return READ
    if method != "tools/call":
        return ""
    scope, scope_with = SCOPES_OF_TOOLS.get(name, (READ, {}))
    more = [needed for each, needed in scope_with.items() if (arguments or {}).get(each) is not None]
    return more[0] if more else scope


def may_delete(tool: str) -> bool:
    """Return whether some calls of a tool need the scope for taking memories out."""
    scope, scope_with = SCOPES_OF_TOOLS.get(tool, (READ, {}))
    return DELETE in (scope, *scope_with.values())


def allows(scopes: Iterable[str] | None, needed: str) -> bool:
    """Return whether scopes allow what needs `needed`; None stands for a caller on this machine."""
    return scopes is None or not needed or not {needed, ADMIN}.isdisjoint(scopes)
