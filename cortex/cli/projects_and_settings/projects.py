"""The commands `projects` and `reset`: projects renamed, merged, split, and all about one erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import NOTHING_FORGOTTEN, Answer, can_ask, command, copies_data, copies_lines, group
from cortex.hooks.prose.characters import displayed
from cortex.transforms.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context import Context
    from cortex.flows.operations.edit.projects import Projects
    from cortex.storage.projects.projects import Project


@group("projects", "List, rename, merge and split projects.", place=10)
def projects(context: Context) -> Answer:
    """List the projects with their identity and folders; rename, merge or split them."""
    return _listed(context)


@command("list", parent=projects)
def list_projects(context: Context) -> Answer:
    """List the projects, as `cortex projects` alone does."""
    return _listed(context)


def _listed(context: Context) -> Answer:
    from cortex.flows.operations.edit import projects

    listed = projects.list_projects(context)
    data = {
        "projects": [
            {
                "id": project.project_id,
                "name": project.name,
                "label": listed.labels[project.project_id],
                "identity": project.identity,
                "paths": list(project.paths),
                "merged": list(project.merged),
            }
            for project in listed.projects
        ],
        "offers": [
            {"from": offer.project_id, "into": offer.into, "reason": offer.reason} for offer in listed.offers
        ],
    }
    hints = [f"{o.reason}: cortex projects merge {o.project_id} {o.into}" for o in listed.offers]
    return Answer(data, [line for project in listed.projects for line in _lines(project, listed)], hints)


def _lines(project: Project, listed: Projects) -> Iterator[str]:
    """Yield a project's label and id; below them its remote or commit where it has one, and its folders."""
    yield f"{listed.labels[project.project_id]}  [{project.project_id}]"
    if not project.identity.startswith("path:"):
        yield f"    {project.identity}"
    for more in (*project.paths, *_with(project.merged)):
        yield f"    {displayed(more)}"


def _with(merged: tuple[str, ...]) -> list[str]:
    return [f"(with {', '.join(merged)})"] if merged else []


@command("rename", parent=projects)
@click.argument("project")
@click.argument("name")
def rename(context: Context, project: str, name: str) -> Answer:
    """Rename PROJECT to NAME; its id stays the same."""
    from cortex.flows.operations.edit import projects

    renamed = projects.rename_project(context, project, name)
    return Answer(
        {"id": renamed.project_id, "name": renamed.name, "applied": renamed.applied.is_in_effect},
        [f"{renamed.project_id} is now called {renamed.name}."],
        warnings=renamed.applied.warnings,
    )


@command("merge", parent=projects)
@click.argument("project", metavar="FROM")
@click.argument("into", metavar="INTO")
def merge(context: Context, project: str, into: str) -> Answer:
    """Merge project FROM into INTO, with its memories, folders and later sessions."""
    from cortex.flows.operations.edit import projects

    merged = projects.merge_projects(context, project, into)
    return Answer(
        {"from": merged.project_id, "into": merged.into, "applied": merged.applied.is_in_effect},
        [f"{merged.project_id} is part of {merged.into} now."],
        [f"To undo it: cortex projects split {merged.project_id}"],
        merged.applied.warnings,
    )


@command("split", parent=projects)
@click.argument("project")
def split(context: Context, project: str) -> Answer:
    """Undo the merge of PROJECT: it gets back what was said in its folders."""
    from cortex.flows.operations.edit import projects

    parted = projects.split_project(context, project)
    return Answer(
        {"split": parted.project_id, "from": parted.into, "applied": parted.applied.is_in_effect},
        [f"{parted.project_id} is a project of its own again."],
        warnings=parted.applied.warnings,
    )


@command("reset", "Erase everything about a project.", place=20)
@click.option("--project", metavar="NAME", required=True, help="Project name, id or path.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def reset(context: Context, project: str, yes: bool) -> Iterator[Answer]:
    """Erase everything about a project up to now; later sessions are kept."""
    from cortex.flows.operations.edit import forget

    plan = forget.plan_reset(context, project)
    names = ", ".join(plan.project_ids)
    if not yes:
        loss = f"{plan.memories} memories and {plan.turns} turns of {names} for good"
        if not can_ask():
            raise UsageError(f"this forgets {loss}.", "To continue, repeat the command with --yes.")
        if not click.confirm(f"This forgets {loss}. Go on?"):
            yield NOTHING_FORGOTTEN
            return
    done = forget.reset(context, plan)
    applied = done.applied
    data = {
        "projects": list(plan.project_ids),
        "memories": plan.memories,
        "turns": plan.turns,
        "applied": applied.is_in_effect,
        "went_with_it": list(done.others),
        **copies_data(done.copies),
    }
    yield Answer(
        data,
        [
            f"Forgotten: {plan.memories} memories and {plan.turns} turns of {names}.",
            *(f"With it, as nothing else says it: global memory {name[:12]}." for name in done.others),
            *copies_lines(done.copies),
        ],
        ["The assistant's own transcripts are stored outside Cortex and are still there; backups too."],
        applied.warnings,
    )
