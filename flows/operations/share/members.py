"""A team's members at its place: their roles by project, another's snapshot taken out, and the team's key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.operations.lookup.targets import project_of
from cortex.flows.operations.share.share import open_place
from cortex.storage.elsewhere.share_place import SharePlace
from cortex.storage.lake.encryption import make_key_file
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from cortex.transforms.documents.members import EVERYWHERE, Member, Members
from cortex.transforms.documents.roles import ADMIN
from cortex.transforms.documents.team_memory import author_name
from cortex.transforms.errors import NotFound, RoleMissing, UsageError

LEAST_MEMBER_CHARS = 4


@dataclass(frozen=True)
class MemberList:
    """
    The members at a place: `own` is this member's id, `members` who has which roles, None if nobody said.

    `pushed` gives the projects that each member shares, by member; it names those without a role too.
    """

    own: str
    members: Members | None
    pushed: Mapping[str, Sequence[str]]

    def of(self, member_id: str) -> Member:
        """Return what is said of a member."""
        return (self.members or Members()).by_id.get(member_id, Member())


def list_members(context: Context) -> MemberList:
    """Return who may do what at the team's place. Raises UsageError, StoreUnreachable, KeyUnavailable."""
    place = open_place(context)
    return MemberList(place.member, place.members(), place.pushed())


def grant(
    context: Context, member: str, role: str, *, project: str | None = None, name: str = ""
) -> MemberList:
    """
    Give a member a role in a project, or in all; "" takes it back.

    The first who does so becomes admin of every project. Raises RoleMissing for who is no admin there,
    NotFound, and UsageError if nobody would be admin of every project any more.
    """
    place = open_place(context)
    place.check_key()
    scope = project_of(context, context.open_store(), project) if project else EVERYWHERE
    before = place.members()
    members = before or Members().granted(place.member, EVERYWHERE, ADMIN)
    _check_admin(place, members, scope)
    target = _member(place, members, member)
    members = members.granted(target, scope, role, author_name(name))
    if not members.has_admin:
        raise UsageError("nobody would be admin any more.", "Make another member admin first.")
    place.put_members(members)
    return MemberList(place.member, members, place.pushed())


def remove_shared(context: Context, member: str, *, project: str | None = None) -> list[str]:
    """
    Remove what another member shares, of a project or of all; return the projects.

    Colleagues lose it with their next pull; the member's next push brings it back unless the role is taken
    too. Raises RoleMissing and NotFound.
    """
    place = open_place(context)
    members = place.members()
    if members is None:
        raise UsageError("nobody has a role here.", "Begin with: cortex team grant MEMBER ROLE")
    target = _member(place, members, member)
    wanted = project_of(context, context.open_store(), project) if project else None
    scopes = [name for name in place.pushed().get(target, ()) if wanted in (None, name)]
    for scope in scopes:
        _check_admin(place, members, scope)
    place.remove_of(target, scopes)
    return scopes


def use_key(context: Context, file: Path) -> tuple[str, int]:
    """
    Encrypt the place with the key in `file`, which is made if there is none; return its id and a count.

    The count is of objects that were encrypted or wrapped again. Raises RoleMissing for who is no admin and
    would wrap others' objects, UsageError for a file in the place or the store, KeyUnavailable.
    """
    place, file = open_place(context), file.expanduser().absolute()
    folder = place.uri.removeprefix("file://")
    if place.uri.startswith("file://") and file.resolve().is_relative_to(Path(folder).resolve()):
        raise UsageError(f"{file} is inside the place that it would encrypt.", "Give a path outside of it.")
    is_joining = place.key is None and place.is_encrypted
    if is_joining and not file.exists():
        place.check_key()
    key = make_key_file(file, context.home)
    count = 0
    if is_joining:
        SharePlace(place.uri, place.member, key).check_key()
    else:
        members = place.members()
        if members is not None:
            _check_admin(place, members, EVERYWHERE)
        count = place.rewrap(key)
    ConfigFile(context.home).set(key_of("share.key_file"), str(file))
    return key.id, count


def _check_admin(place: SharePlace, members: Members, scope: str) -> None:
    if not members.allows(place.member, scope, ADMIN):
        what = "every project" if scope == EVERYWHERE else scope
        raise RoleMissing(what, members.role(place.member, scope), ADMIN)


def _member(place: SharePlace, members: Members, named: str) -> str:
    """Return the member whose id begins with `named`, or whose name it is. Raises NotFound and UsageError."""
    ids = {place.member, *members.by_id, *place.pushed()}
    is_id = len(named) >= LEAST_MEMBER_CHARS
    matches = {each for each in ids if is_id and each.startswith(named)}
    matches |= {key for key, each in members.by_id.items() if each.name == named}
    if len(matches) > 1:
        raise UsageError(f"'{named}' means several members.", "Give more of the id: cortex team members")
    if not matches and len(named) == len(place.member) and not named.strip("0123456789abcdef"):
        return named  # one who has not pushed yet
    if not matches:
        raise NotFound(f"no member is '{named}'.", "Each sees their own id with: cortex team members")
    return matches.pop()
