"""The command `team`: proposes memories on a branch, and says what the team's memory holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, can_ask, command, group
from cortex.cli.options import DRY_RUN, PROJECT_OPTION
from cortex.cli.shape.members import (
    grant,
    key,
    members,
    remove,
)
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import counted
from cortex.transforms.words.sentences import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context
    from cortex.flows.operations.share.team import TeamProposal, TeamStatus

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

    Text that others wrote in FILE stays. Where two branches changed it, run this again: the list then has the
    decisions of both.
    """
    from cortex.flows.operations.share import team_decisions

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
