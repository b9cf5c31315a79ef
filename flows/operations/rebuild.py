"""Rebuilds the tables from the lake, compares them with it, and shows what today's extractor would change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cortex.flows import rebuild as tables
from cortex.flows import rederive as derivation
from cortex.flows.comparison import Comparison, compare
from cortex.flows.context import Context
from cortex.flows.lake_repair import LakeRepair, Repair
from cortex.flows.rederive import Rederivation
from cortex.flows.report import RunReport
from cortex.flows.run import Progress, Run, no_progress
from cortex.flows.runs import opened, row_counts
from cortex.storage.reports import keep_report
from cortex.transforms.errors import UsageError

REBUILT = ("rebuild", "render")


@dataclass(frozen=True)
class Rederived:
    """A re-derivation, what became of it, and how many projects declined it."""

    rederivation: Rederivation
    outcome: Literal["proposed", "promoted", "dropped"]
    declined: int


def compare_tables(context: Context) -> Comparison:
    """Return how the live tables differ from what the lake gives; changes nothing."""
    with opened("rebuild", context) as run:
        return compare(run)


def rebuild_tables(
    context: Context,
    *,
    adopt_lake: bool = False,
    quarantine: bool = False,
    accepts_loss: bool = False,
    progress: Progress = no_progress,
    on_repair: Callable[[Repair], None] = lambda repair: None,
) -> RunReport:
    """
    Rebuild tables and briefs from the lake and replace the live ones.

    `adopt_lake` first rebuilds the manifest from the lake's files; `quarantine` moves those that cannot be
    used beside the store and accepts what is lost with them. `on_repair` is given what either did. Raises
    AuditFailed, LossRefused, and LakeUnclear where files are in doubt.
    """
    at = context.now
    repair = LakeRepair(context.settings, at, adopt=adopt_lake, quarantine=quarantine)
    with opened("rebuild", context, progress=progress, prepare=repair) as run:
        on_repair(repair.done)
        run.accepts_loss = accepts_loss or quarantine
        tables.rebuild(run)
        _keep(run, sum(stage.seconds for stage in run.report.stages if stage.stage in REBUILT))
    return run.report


def rederive(
    context: Context,
    project: str | None = None,
    *,
    promote: bool = False,
    drop: bool = False,
    accepts_loss: bool = False,
) -> Rederived:
    """
    Return what extractor and policy of today make of the turns of a project (default: all).

    `promote` puts that in place of what is there, `drop` keeps what is there and does not ask again. Raises
    AuditFailed, LossRefused.
    """
    if promote and drop:
        raise UsageError("--promote and --drop cannot be combined.", "Give one of them, or none to look.")
    projects = context.open_store().projects.named(project) if project else None
    with opened("rederive", context) as run:
        run.accepts_loss = accepts_loss
        rederivation = derivation.propose_rederivation(run, projects)
        if promote:
            derivation.promote(run, rederivation)
            _keep(run, rederivation.seconds)
        declined = derivation.decline(run, projects) if drop else []
    outcome: Literal["proposed", "promoted", "dropped"] = (
        "promoted" if promote else "dropped" if drop else "proposed"
    )
    return Rederived(rederivation, outcome, len(declined))


def _keep(run: Run, seconds: float) -> None:
    run.report.rows = row_counts(run)
    run.report.seconds = seconds
    keep_report(run.store.runs, run.report)
