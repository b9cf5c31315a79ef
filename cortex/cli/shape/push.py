"""The commands `push` and `pull`: share memories with colleagues through a bucket or a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, can_ask, command
from cortex.cli.options import DRY_RUN
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cortex.flows.context.context import Context
    from cortex.flows.operations.share.share import ProjectPush

CHOOSE = "Choose projects: cortex config set share.projects FOLDER"


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
