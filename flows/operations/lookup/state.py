"""What an answer about a project follows from: as long as it is the same, so is the answer."""

from cortex.flows.context.context import Context
from cortex.storage.ground.git import state_of


def state_of_project(context: Context, project_id: str) -> object:
    """
    Return what changes with the store, its settings and policy, the project's repository, and the day.

    The store's part is the manifest's file and the names of the journal's entries that wait: every run and
    every deed changes one of them.
    """
    catalogue = context.open_catalogue()
    folders = [path for project in catalogue.project_called(project_id) for path in project.paths]
    return (
        catalogue.state,
        context.settings,
        context.policy.fingerprint,
        state_of(folders),
        context.now.date(),
    )
