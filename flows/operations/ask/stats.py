"""How sessions went, by project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cortex.flows.context.context import Context
from cortex.flows.operations.lookup.targets import projects_of
from cortex.hooks.tokens import tokens_in
from cortex.storage.lake.lake import each_key_once
from cortex.storage.projects.projects import Project
from cortex.transforms.schemas import EPOCH, EVENTS, TURNS
from cortex.transforms.views.metrics import session_metrics


@dataclass(frozen=True)
class ProjectStats:
    """A project's sessions as rows of METRICS, the oldest first, and its published brief's size in tokens."""

    project: Project
    label: str
    brief_tokens: int
    sessions: Sequence[Mapping[str, Any]]


def read_stats(context: Context, project: str | None = None) -> list[ProjectStats]:
    """Return the figures of the named projects, or of the folder's, or of all where the folder is none."""
    store, policy = context.open_store(), context.policy
    labels, stats = store.projects.labels(), []
    for each in projects_of(context, store, project):
        turns = each_key_once(TURNS, store.lake.read(TURNS, each.project_id))
        sessions = session_metrics(turns, store.lake.read(EVENTS, each.project_id), policy)
        tokens = tokens_in(store.published.brief(each.project_id))
        rows = sorted(sessions.to_pylist(), key=lambda row: (row["began_at"] or EPOCH, row["session_id"]))
        stats.append(ProjectStats(each, labels[each.project_id], tokens, rows))
    return stats
