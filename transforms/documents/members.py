"""Who may read, write and administer a team's place, by project: the file `share/members.json`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cortex.transforms.documents.team_memory import Unusable, author_name
from cortex.transforms.vocabulary import ADMIN, ROLES

MEMBERS_FORMAT = "cortex-members"
EVERYWHERE = "*"


@dataclass(frozen=True)
class Member:
    """A member: a name for people, and roles by project id, under `*` for every other project."""

    name: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Members:
    """All members by id. Whoever is not listed may do nothing."""

    by_id: Mapping[str, Member] = field(default_factory=dict)

    def role(self, member_id: str, project_id: str) -> str:
        """Return a member's role in a project, "" for none."""
        roles = self.by_id.get(member_id, Member()).roles
        return roles.get(project_id, roles.get(EVERYWHERE, ""))

    def allows(self, member_id: str, project_id: str, needed: str) -> bool:
        """Return whether a member's role in a project is `needed` or more."""
        role = self.role(member_id, project_id)
        return role in ROLES and ROLES.index(role) >= ROLES.index(needed)

    def granted(self, member_id: str, project_id: str, role: str, name: str = "") -> "Members":
        """Return the members once one has a role in a project, or (for "") none there."""
        known = self.by_id.get(member_id, Member())
        # An empty role is kept for a project: it takes back there what `*` gives.
        roles = {**known.roles, project_id: role}
        if project_id == EVERYWHERE:
            roles = {EVERYWHERE: role} if role else {}
        changed = replace(known, name=name or known.name, roles=roles)
        left = {key: each for key, each in self.by_id.items() if key != member_id}
        return Members({**left, member_id: changed} if any(roles.values()) else left)

    @property
    def has_admin(self) -> bool:
        """Whether somebody may change the roles of every project."""
        return any(each.roles.get(EVERYWHERE) == ADMIN for each in self.by_id.values())

    def as_text(self) -> str:
        """Return the file's text."""
        members = {key: {"name": each.name, "roles": dict(each.roles)} for key, each in self.by_id.items()}
        document = {"format": MEMBERS_FORMAT, "version": 1, "members": members}
        return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_members(content: bytes) -> Members:
    """Return what the file says. Raises Unusable if it is none: nobody's role is known then."""
    try:
        document = json.loads(content)
        if document["format"] != MEMBERS_FORMAT or document["version"] != 1:
            raise Unusable("it is of another version of Cortex")
        return Members({str(key): _member(each) for key, each in document["members"].items()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unusable("it is damaged") from error


def _member(entry: Mapping[str, object]) -> Member:
    roles = entry["roles"]
    if not isinstance(roles, dict) or not all(role in (*ROLES, "") for role in roles.values()):
        raise ValueError("not roles")
    return Member(author_name(str(entry.get("name", ""))), {str(key): role for key, role in roles.items()})
