"""What a caller over HTTP may do: by the scopes of its token, and by its role in each project."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cortex.mcp.tool_index import SCOPES_OF_TOOLS
from cortex.transforms.vocabulary import ADMIN as ADMIN_ROLE
from cortex.transforms.vocabulary import GLOBAL_SCOPE, READER, WRITER, caller_role

# -- What a token must allow for a request: reading, writing, taking out, or everything.

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


# -- What the role of a caller over HTTP allows in each project, by the setting `mcp.http_roles`.

ALLOWED = {
    READER: frozenset((READ,)),
    WRITER: frozenset((READ, WRITE)),
    ADMIN_ROLE: frozenset((READ, WRITE, DELETE, ADMIN)),
}
MIN_ROLE = {READ: READER, WRITE: WRITER, DELETE: ADMIN_ROLE, ADMIN: ADMIN_ROLE}
EVERYBODY = "*"


@dataclass(frozen=True)
class CallerRoles:
    """A caller's roles: `general` where a project has none of its own, "" for none."""

    general: str = ""
    by_project: Mapping[str, str] = field(default_factory=dict)

    def role(self, scope: str) -> str:
        """Return the role in a project, or for what holds everywhere."""
        return self.by_project.get(scope, self.general)

    def allows(self, scope: str, needed: str) -> bool:
        """
        Return whether the role allows in a project what a token needs the scope `needed` for.

        Who has a role anywhere reads what holds everywhere.
        """
        if scope == GLOBAL_SCOPE and needed == READ:
            return bool(self.general or any(self.by_project.values()))
        return needed in ALLOWED.get(self.role(scope), frozenset())


def roles_of(
    principal: str, listed: Sequence[str], project_at: Callable[[str], str | None]
) -> CallerRoles | None:
    """
    Return a caller's roles, None if the setting gives nobody any; `project_at` knows a folder's project.

    What is said of the caller goes before what is said of everybody (`*`), a folder's before the general.

    >>> roles = roles_of("ada", ["*=reader", "ada=writer@/srv/api"], {"/srv/api": "api-1"}.get)
    >>> roles.role("api-1"), roles.role("site-1")
    ('writer', 'reader')
    """
    if not listed:
        return None
    general, by_project = "", dict[str, str]()
    for subject in (EVERYBODY, principal):
        own = [each for each in map(caller_role, listed) if each.subject == subject]
        if subject == principal and any(not each.folder for each in own):
            by_project = {}
        for each in own:
            project_id = project_at(each.folder) if each.folder else None
            if project_id:
                by_project[project_id] = each.role
            elif not each.folder:
                general = each.role
    return CallerRoles(general, by_project)


def folders_of_roles(principal: str, listed: Sequence[str]) -> list[str]:
    """Return the folders in which a caller, or everybody, has a role of their own."""
    entries = map(caller_role, listed)
    return [each.folder for each in entries if each.folder and each.subject in (EVERYBODY, principal)]
