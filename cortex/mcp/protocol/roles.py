"""What the role of a caller over HTTP allows in each project, by the setting `mcp.http_roles`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cortex.mcp.protocol.scopes import (
    ADMIN,
    DELETE,
    READ,
    WRITE,
)
from cortex.transforms.documents.roles import ADMIN as ADMIN_ROLE
from cortex.transforms.documents.roles import READER, WRITER, caller_role
from cortex.transforms.vocabulary import GLOBAL_SCOPE

ALLOWED = {
    READER: frozenset((READ,)),
    WRITER: frozenset((READ, WRITE)),
    ADMIN_ROLE: frozenset((READ, WRITE, DELETE, ADMIN)),
}
LEAST_ROLE = {READ: READER, WRITE: WRITER, DELETE: ADMIN_ROLE, ADMIN: ADMIN_ROLE}
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
