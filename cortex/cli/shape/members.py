"""The commands below `team` about its place: members and their roles, and the team's key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, can_ask, command
from cortex.cli.options import PROJECT_OPTION
from cortex.cli.terminal import Listing
from cortex.transforms.documents.members import EVERYWHERE
from cortex.transforms.documents.roles import ROLES
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.share.members import MemberList

NO_ROLE = "none"


@command("members")
def members(context: Context) -> Answer:
    """
    Show your id at the team's place (share.place), and the members with their roles and what they share.
    """
    from cortex.flows.operations.share import members

    return _list(members.list_members(context))


@command("grant")
@click.argument("member")
@click.argument("role", type=click.Choice([*ROLES, NO_ROLE]))
@PROJECT_OPTION
@click.option("--name", default="", help="Name to show in the list of members.")
def grant(context: Context, member: str, role: str, project: str | None, name: str) -> Answer:
    """Give MEMBER (an id or a name) a role in one project or in all; `none` takes it away.

    A reader can pull, a writer can also push, an admin can also give roles and remove what others share. The
    first person to grant a role becomes admin of every project; from then on, people without a role have no
    access.
    """
    from cortex.flows.operations.share import members

    given = "" if role == NO_ROLE else role
    return _list(members.grant(context, member, given, project=project, name=name))


@command("remove")
@click.argument("member")
@PROJECT_OPTION
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(context: Context, member: str, project: str | None, yes: bool) -> Answer:
    """Remove what MEMBER shares at the team's place, in one project or in all (admins only)."""
    from cortex.flows.operations.share import members

    if not yes:
        if not can_ask():
            raise UsageError("this removes what they share.", "To do it, repeat the command with --yes.")
        if not click.confirm(f"Remove what {member} shares?"):
            return Answer({"removed": []}, ["Nothing was removed."])
    removed = members.remove_shared(context, member, project=project)
    line = f"Removed what {member} shares of {counted(len(removed), 'project')}: {', '.join(removed)}."
    hints = [
        "Colleagues lose it with their next pull; versions that the bucket keeps are out of reach.",
        f"Their next push brings it back unless they may not: cortex team grant {member} none",
    ]
    return Answer({"removed": removed}, [line if removed else f"{member} shares nothing there."], hints)


@command("key")
@click.argument("file", type=click.Path(path_type=Path))
def key(context: Context, file: Path) -> Answer:
    """Encrypt what your team shares with the key in FILE, which is created if missing.

    If the key differs from the old one, everything at the team's place is encrypted again. Once every copy of
    a key is destroyed, data encrypted only with it is unreadable, also in versions and backups of the bucket.
    """
    from cortex.flows.operations.share import members

    key_id, count = members.use_key(context, file)
    return Answer(
        {"key": key_id, "written": count},
        [f"What you push is encrypted with the key {key_id}; {counted(count, 'object')} put under it."],
        [
            f"Give {file} to your team by a safe way, not through the place; each then: cortex team key FILE",
            "Without this file nobody can read what is shared. Keep a copy of it.",
        ],
    )


def _list(listed: MemberList) -> Answer:
    names = sorted({*listed.pushed, *(listed.members.by_id if listed.members else ()), listed.own})
    data = {
        "own": listed.own,
        "has_roles": listed.members is not None,
        "members": [
            {
                "member": each,
                "name": listed.of(each).name,
                "roles": dict(listed.of(each).roles),
                "shares": sorted(listed.pushed.get(each, ())),
            }
            for each in names
        ],
    }
    lines: list[str | Listing] = [f"Your id here: {listed.own}"]
    lines += list(_rows(listed, names))
    everybody = "No roles granted yet: everybody can read and write. Grant one: cortex team grant MEMBER ROLE"
    return Answer(data, lines, [] if listed.members else [everybody])


def _rows(listed: MemberList, names: list[str]) -> Iterator[Listing]:
    rows = []
    for each in names:
        roles = listed.of(each).roles
        held = ", ".join(
            f"{role or 'none'}{'' if scope == EVERYWHERE else f' of {scope}'}"
            for scope, role in sorted(roles.items())
        )
        rows.append([each, listed.of(each).name, held, ", ".join(sorted(listed.pushed.get(each, ())))])
    yield Listing("Members", ["id", "name", "role", "shares"], rows)
