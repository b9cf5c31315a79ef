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
    help="A project's name, id or path; default: this folder's.",
    shell_complete=_projects,
)
ALL_PROJECTS = click.option("--all-projects", is_flag=True, help="From every project.")
LIMIT = click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="COUNT",
    help="Show at most this many rows.",
)
AS_OF = click.option(
    "--as-of", metavar="DATE", help="As of the end of that day (UTC): only what was known by then."
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Change nothing; print the difference.")
ENGINE = click.option(
    "--engine",
    type=click.Choice(["auto", "prefect", "plain"]),
    help="Run the stages under Prefect, or one after another without it. Default: the setting run.engine "
    "(auto: under Prefect where a server of it is set up).",
)
ACCEPT_LOSS = click.option(
    "--accept-loss", is_flag=True, help="Publish even if much of what was shown would disappear."
)
