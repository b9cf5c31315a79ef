"""Options that several commands share."""

import click


def _projects(context: click.Context, option: click.Parameter, word: str) -> list[str]:
    """Return the ids of the projects that begin with `word`, for a shell that completes."""
    from cortex.storage.ground.place import store_home
    from cortex.storage.published.catalogue import Catalogue

    return [name for name in Catalogue(store_home()).project_ids() if name.startswith(word)]


PROJECT_OPTION = click.option(
    "--project",
    metavar="NAME",
    help="Project name, id or path. Default: the project of this folder.",
    shell_complete=_projects,
)
ALL_PROJECTS = click.option("--all-projects", is_flag=True, help="Include every project.")
LIMIT = click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="COUNT",
    help="Show at most COUNT rows.",
)
AS_OF = click.option("--as-of", metavar="DATE", help="Use what was known at the end of that day (UTC).")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
ENGINE = click.option(
    "--engine",
    type=click.Choice(["auto", "prefect", "plain"]),
    help="Run the stages with Prefect, or one after another without it. Default: the setting run.engine "
    "(auto: with Prefect if a server is configured).",
)
ACCEPT_LOSS = click.option(
    "--accept-loss", is_flag=True, help="Publish even if many memories now shown would disappear."
)
