"""The commands `team`, `push` and `pull`: memories shared by git, or through a bucket or folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import DRY_RUN, PROJECT_OPTION, Answer, Listing, can_ask, command, group
from cortex.transforms.documents.team_memory import EVERYWHERE
from cortex.transforms.errors import UsageError
from cortex.transforms.vocabulary import ROLES
from cortex.transforms.words.ages import counted
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cortex.flows.context import Context
    from cortex.flows.operations.share.share import MemberList, ProjectPush
    from cortex.flows.operations.share.team import TeamProposal, TeamStatus


NO_ROLE = "none"


@command("members")
def members(context: Context) -> Answer:
    """
    Show your id at the team's place (share.place), and the members with their roles and what they share.
    """
    from cortex.flows.operations.share import share

    return _list(share.list_members(context))


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
    from cortex.flows.operations.share import share

    given = "" if role == NO_ROLE else role
    return _list(share.grant(context, member, given, project=project, name=name))


@command("remove")
@click.argument("member")
@PROJECT_OPTION
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(context: Context, member: str, project: str | None, yes: bool) -> Answer:
    """Remove what MEMBER shares at the team's place, in one project or in all (admins only)."""
    from cortex.flows.operations.share import share

    if not yes:
        if not can_ask():
            raise UsageError("this removes what they share.", "To do it, repeat the command with --yes.")
        if not click.confirm(f"Remove what {member} shares?"):
            return Answer({"removed": []}, ["Nothing was removed."])
    removed = share.remove_shared(context, member, project=project)
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
    from cortex.flows.operations.share import share

    key_id, count, skipped = share.use_key(context, file)
    return Answer(
        {"key": key_id, "written": count, "skipped": skipped},
        [f"What you push is encrypted with the key {key_id}; {counted(count, 'object')} put under it."],
        [
            f"Give {file} to your team by a safe way, not through the place; each then: cortex team key FILE",
            "Without this file nobody can read what is shared. Keep a copy of it.",
            *(
                f"Left as it is, and not read: {name} was not encrypted by a member who has the key."
                for name in skipped
            ),
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


NOTHING_PROPOSED = "Nothing was proposed."
ATTRIBUTES = "echo 'decisions.md merge=union' >> .gitattributes"


@group("team", "Share memories with your team through git.", place=100)
def team(context: Context) -> Answer:
    """
    Share memories through git: propose them on a branch, have them reviewed; Cortex reads what is merged.
    """
    from cortex.flows.operations.share import team

    return _status(team.team_status(context))


@command("status", parent=team)
@PROJECT_OPTION
def status(context: Context, project: str | None) -> Answer:
    """
    Show proposed and merged memories, rejected files with the reason, and contradictions with your own
    memories.
    """
    from cortex.flows.operations.share import team

    return _status(team.team_status(context, project=project))


@command("propose", parent=team)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@PROJECT_OPTION
@click.option("--type", "memory_type", metavar="TYPE", help="Without IDs: only memories of this type.")
@click.option("--pinned", is_flag=True, help="Without IDs: only pinned memories.")
@click.option("--remove", is_flag=True, help="Propose to remove these from the team's memory.")
@click.option("--branch", metavar="NAME", help="Branch to commit to. Default: cortex/memories.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@DRY_RUN
def propose(
    context: Context,
    ids: tuple[str, ...],
    project: str | None,
    memory_type: str | None,
    pinned: bool,
    remove: bool,
    branch: str | None,
    yes: bool,
    dry_run: bool,
) -> Iterator[Answer]:
    """Commit memories to a branch, one file each, for a pull request; nothing is pushed.

    Name memories by ID, or propose those of a project that you stated yourself. The commit does not touch
    your index or working tree. A memory that holds a secret is refused.
    """
    from cortex.flows.operations.share import team

    if ids and (memory_type or pinned):
        raise UsageError("IDs and filters cannot be combined.", "Give IDs, or --type and --pinned.")
    if remove and not ids:
        raise UsageError("nothing is named.", "Give the IDs of the memories that the team should drop.")
    plan = team.plan_proposal(
        context,
        ids,
        project=project,
        memory_type=memory_type,
        pinned=pinned,
        removes=remove,
        **({"branch": branch} if branch else {}),
    )
    data = _plan_data(plan)
    if dry_run or plan.is_empty:
        yield Answer({**data, "commit": None}, [*_plan_lines(plan), *([] if dry_run else [NOTHING_PROPOSED])])
        return
    if not ids and not yes:
        yield Answer({**data, "commit": None}, _plan_lines(plan))
        if not can_ask():
            raise UsageError("this would be proposed.", "To commit it, repeat the command with --yes.")
        if not click.confirm("Commit this?"):
            yield Answer({**data, "commit": None}, [NOTHING_PROPOSED])
            return
    committed = team.propose_memories(context, plan)
    lines = [] if not ids and not yes else list(_plan_lines(plan))
    lines.append(f"Committed to {committed.branch} as {committed.commit[:10]}; your work is untouched.")
    hints = [f"Next: {committed.next_command}, then open a pull request."]
    yield Answer({**data, "commit": committed.commit, "next": committed.next_command}, lines, hints)


@command("decisions", parent=team)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@PROJECT_OPTION
def decisions(context: Context, file: Path | None, project: str | None) -> Answer:
    """Print the project's decisions as a list, or update the list in FILE (decisions.md).

    Text that others wrote in FILE stays. If two branches changed it, run this again: the list then has the
    decisions of both.
    """
    from cortex.flows.operations.share import team as team_decisions

    written = team_decisions.write_decisions(context, file, project=project)
    data = {"file": str(file) if file else None, "decisions": written.decisions, "left_out": written.left_out}
    warnings = [f"Left out: {name[:12]}: {reason}." for name, reason in written.left_out.items()]
    if file is None:
        return Answer(data, written.text.splitlines(), warnings=warnings)
    hints = [f"So that branches merge without a conflict, once a repository: {ATTRIBUTES}"]
    return Answer(data, [f"{file}: {counted(written.decisions, 'decision')} of yours."], hints, warnings)


def _plan_data(plan: TeamProposal) -> dict[str, object]:
    return {
        "branch": plan.branch,
        "base": plan.base.name,
        "proposed": [{"id": each.memory_id, "path": each.path} for each in plan.additions],
        "removed": list(plan.removals),
        "left_out": [{"id": each.memory_id, "reason": each.problem} for each in plan.left_out],
    }


def _plan_lines(plan: TeamProposal) -> Iterator[str]:
    for each in plan.additions:
        yield f"+ {each.path}"
        yield f"    {excerpt(each.text, 100)}"
    for path in plan.removals:
        yield f"- {path}"
    for each in plan.left_out:
        yield f"  left out: {each.memory_id[:12]}  {each.problem}"


def _status(shown: TeamStatus) -> Answer:
    data = {
        "project": shown.project_id,
        "branch": shown.branch.name if shown.branch else None,
        "merged": [
            {"id": name, "type": fact.memory_type, "text": fact.text, "authors": sorted(set(fact.authors))}
            for name, fact in shown.merged.items()
        ],
        "unread": list(shown.unread),
        "leaving": list(shown.leaving),
        "forgotten": list(shown.forgotten),
        "proposed": list(shown.proposed),
        "conflicts": [vars(conflict) for conflict in shown.conflicts],
        "refusals": [vars(each) for each in shown.refusals],
    }
    hints = []
    if shown.unread or shown.leaving:
        hints.append("The next run reads the changes: cortex run")
    if shown.conflicts:
        hints.append("Settle a conflict: cortex review")
    return Answer(data, _status_lines(shown), hints)


def _status_lines(shown: TeamStatus) -> Iterator[str]:
    if shown.branch is None:
        yield "No git repository with a default branch belongs to this project."
        return
    yield f"{counted(len(shown.merged), 'memory')} on {shown.branch.name}, {len(shown.unread)} not read yet"
    for name, fact in shown.merged.items():
        mark = "new " if name in shown.unread else "    "
        yield f"  {mark}{name[:6]}  {', '.join(sorted(set(fact.authors)))}: {excerpt(fact.text, 80)}"
    for name in shown.leaving:
        yield f"  gone {name[:6]}  removed there; withdrawn by the next run"
    for name in shown.forgotten:
        yield f"  {name[:6]} was forgotten here and stays so; its file is still in the repository"
    if shown.proposed:
        yield f"{counted(len(shown.proposed), 'file')} proposed and not merged:"
    for path in shown.proposed:
        yield f"  {path}"
    for each in shown.refusals:
        yield f"{'Remark' if each.is_read else 'Set aside'}: {each.path}: {each.reason}"
    for conflict in shown.conflicts:
        yield f"Conflict ({conflict.rule}):"
        yield f"  yours   {conflict.own_id[:6]}  {excerpt(conflict.own_text, 80)}"
        yield f"  theirs  {conflict.team_id[:6]}  {excerpt(conflict.team_text, 80)} ({conflict.speaker})"


for below in (members, grant, remove, key):
    team.add_command(below)


CHOOSE = "Choose projects: cortex config set share.projects NAME"


@command("push", "Share memories through a bucket or folder.", place=110)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@DRY_RUN
def push(context: Context, yes: bool, dry_run: bool) -> Iterator[Answer]:
    """Share the memories of the projects you chose (share.projects) at your team's place (share.place).

    First shows how many memories it would share and withdraw. No transcript leaves this machine. Memories
    that you forgot, superseded or stopped sharing since the last push are withdrawn.
    """
    from cortex.flows.operations.share import share

    planned = share.plan_push(context)
    data = {"projects": [_push_data(each) for each in planned], "pushed": False}
    if not planned:
        yield Answer(data, ["No project is shared."], [CHOOSE])
        return
    if dry_run or not yes:
        yield Answer(data, [line for each in planned for line in _push_lines(each)])
        if dry_run:
            return
        if not can_ask():
            raise UsageError("this would be shared.", "To share it, repeat the command with --yes.")
        if not click.confirm("Share this?"):
            yield Answer(data, ["Nothing was shared."])
            return
    share.push(context, planned)
    lines = [line for each in planned for line in _push_lines(each)] if yes else []
    withdrawn = sum(each.withdrawn for each in planned)
    ending = f", {withdrawn} withdrawn" if withdrawn else ""
    lines.append(f"Shared: {counted(sum(each.shared for each in planned), 'memory')}{ending}.")
    yield Answer({**data, "pushed": True}, lines, [_reach(withdrawn)] if withdrawn else [])


@command("pull", "Read the memories that colleagues share there.", place=120)
def pull(context: Context) -> Answer:
    """Read what colleagues share of the projects you chose, and remove what they withdrew."""
    from cortex.flows.operations.share import share

    pulls, applied = share.pull(context)
    data = {
        "projects": [{**vars(each), "refusals": dict(each.refusals)} for each in pulls],
        "applied": applied.is_in_effect,
    }
    lines = []
    for each in pulls:
        lines.append(
            f"{each.name}: {counted(each.shared, 'memory')} of colleagues, {each.fresh} new, "
            f"{each.withdrawn} withdrawn"
        )
        lines += [f"  set aside: {count} × {reason}" for reason, count in sorted(each.refusals.items())]
    hints = [] if pulls else [CHOOSE]
    if conflicts := sum(each.conflicts for each in pulls):
        hints.append(f"{counted(conflicts, 'memory')} of colleagues against your own: cortex review")
    return Answer(data, lines or ["No project is shared."], hints, applied.warnings)


def _reach(withdrawn: int) -> str:
    return (
        f"Withdrawn: {counted(withdrawn, 'memory')}. Colleagues lose them with their next pull; older "
        "versions that the bucket keeps, and backups, are out of reach."
    )


def _push_data(each: ProjectPush) -> Mapping[str, object]:
    return {
        "project": each.project_id,
        "shared": each.shared,
        "new": each.fresh,
        "withdrawn": each.withdrawn,
        "left_out": dict(each.left_out),
    }


def _push_lines(each: ProjectPush) -> Iterator[str]:
    yield f"{each.name}: {counted(each.shared, 'memory')}, {each.fresh} new, {each.withdrawn} withdrawn"
    for reason, count in sorted(each.left_out.items()):
        yield f"  stays here: {count} × {reason}"
