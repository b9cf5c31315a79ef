"""What the store holds, what is waiting, how the last runs went."""

from dataclasses import dataclass
from pathlib import Path

from cortex.flows.context import Context
from cortex.flows.extract import outdated
from cortex.flows.models import hosted_failure
from cortex.flows.stages.guard import pending_loss
from cortex.storage.background_run import Background, background_state
from cortex.storage.files import folder_bytes
from cortex.storage.model_failure import ModelFailure
from cortex.storage.reports import last_report
from cortex.storage.store import Store
from cortex.transforms.schemas import GLOBAL_SCOPE


@dataclass(frozen=True)
class ProjectCounts:
    """How many rows a project's tables hold."""

    name: str
    memories: int
    edges: int
    passages: int
    id: str


@dataclass(frozen=True)
class Status:
    """
    The state of a store of `bytes` bytes in the folder `home`.

    `waiting` transcripts are staged; `outdated` are projects whose memories another extractor or policy
    extracted; `pending_loss` is what a run would have hidden and so did not publish; `last_run` is the last
    report; `embedding_failure` is that of the hosted model while the local one stands in for it.
    """

    home: Path
    bytes: int
    waiting: int
    outdated: list[str]
    pending_loss: dict[str, object] | None
    projects: list[ProjectCounts]
    last_run: dict[str, object] | None
    background: Background
    embedding_failure: ModelFailure | None


def read_status(context: Context) -> Status:
    """Return the state of the store."""
    store = context.open_store()
    return Status(
        home=context.home,
        bytes=folder_bytes(context.home),
        waiting=len(store.staging.list_waiting()),
        outdated=outdated(store.lake.manifest, context.policy),
        pending_loss=pending_loss(store.lake.manifest),
        projects=_counts(store),
        last_run=last_report(store.runs),
        background=background_state(context.home),
        embedding_failure=hosted_failure(context.settings),
    )


def _counts(store: Store) -> list[ProjectCounts]:
    names = {project.project_id: project.name for project in store.projects.all()}
    counts = []
    for scope, name in {**names, GLOBAL_SCOPE: "(global)"}.items():
        memories, edges, passages = (
            store.tables.open(scope, table).count() for table in ("memories", "edges", "passages")
        )
        if scope != GLOBAL_SCOPE or memories or edges or passages:
            counts.append(ProjectCounts(name, memories, edges, passages, scope))
    return counts
