"""Rebuilds the tables from the lake, compares them with it, and shows what today's extractor would change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cortex.flows.context import Context
from cortex.flows.engines.runs import opened, repair_lake, row_counts
from cortex.flows.past import rebuilding as tables
from cortex.flows.past import rederive as derivation
from cortex.flows.past.rebuilding import Comparison, LakeRepair, Repair, compare
from cortex.flows.past.rederive import Rederivation
from cortex.flows.run.run import Progress, Run, no_progress
from cortex.flows.run_report import RunReport
from cortex.storage.lake.lake import LAKE_TABLES
from cortex.storage.published.reports import keep_report
from cortex.transforms.errors import UsageError

if TYPE_CHECKING:
    from cortex.flows.operations.maintain.cost import PlannedStage

REBUILT = ("rebuild", "render")


@dataclass(frozen=True)
class Rederived:
    """
    A re-derivation, its result, and how many projects declined it.

    `again` is what it would cost to read again, with a language model, the sessions that other versions of
    its instruction have read; None if none has. `notes` give the outcome of requests that were sent.
    """

    rederivation: Rederivation
    outcome: Literal["proposed", "promoted", "dropped"]
    declined: int
    again: "PlannedStage | None" = None
    notes: Sequence[str] = ()


def compare_tables(context: Context) -> Comparison:
    """Return how the live tables differ from what the lake gives; changes nothing."""
    with opened("rebuild", context) as run:
        run.store.lake.check_readable(LAKE_TABLES.values())
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
    AuditFailed, LossRefused, and LakeUnclear if files are in doubt.
    """
    at = context.now
    repair = LakeRepair(context.settings, at, adopt=adopt_lake, quarantine=quarantine)
    with opened("rebuild", context, progress=progress, prepare=repair) as run:
        on_repair(repair.done)
        if damage := repair_lake(run):
            raise damage
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
    prompt: str | None = None,
    asks: bool = False,
) -> Rederived:
    """
    Return what extractor and policy of today make of the turns of a project (default: all).

    `promote` puts that in place of what is there, `drop` keeps what is there and does not ask again. `prompt`
    is the version of a language model's instruction whose facts count of several (default: the one that reads
    new sessions); `asks` first reads with it, within the budget, the sessions that others have read. Raises
    AuditFailed, LossRefused, UsageError.
    """
    if promote + drop + asks > 1:
        raise UsageError("--promote, --drop and --ask cannot be combined.", "Give one, or none to look.")
    _check_model(context, prompt, asks=asks)
    projects = context.open_store().projects.named(project) if project else None
    with opened("rederive", context) as run:
        run.accepts_loss = accepts_loss
        prompts = _prompts(run, projects, prompt)
        if asks:
            _read_again(run, prompts)
        rederivation = derivation.propose_rederivation(run, projects, prompts)
        again = _plan_again(context, run, prompts)
        if promote:
            derivation.promote(run, rederivation, prompt if projects is None else None)
            _keep(run, rederivation.seconds)
        declined = derivation.decline(run, projects) if drop else []
    outcome: Literal["proposed", "promoted", "dropped"] = (
        "promoted" if promote else "dropped" if drop else "proposed"
    )
    notes = [*run.report.notes, *(stage.note for stage in run.report.stages if stage.note)]
    return Rederived(rederivation, outcome, len(declined), again, notes if asks else ())


def _check_model(context: Context, prompt: str | None, *, asks: bool) -> None:
    models = context.settings.models
    if (asks and not models.is_on) or (prompt and not models.uses_replies):
        raise UsageError("No language model is chosen.", "Choose one: cortex config set models.writer")
    if prompt:
        from cortex.flows.run.model_replies import check_prompt

        check_prompt(prompt)


def _prompts(run: Run, projects: Sequence[str] | None, prompt: str | None) -> dict[str, str]:
    """Return, by project, the version of the instruction to show; none if no language model is chosen."""
    if not run.settings.models.uses_replies:
        return {}
    # Imported here, as below: with no language model chosen none of this is loaded.
    from cortex.flows.run.model_replies import prompts_to_show

    prompts = prompts_to_show(run, prompt)
    if projects is None:
        return prompts
    parts = {part for name in projects for part in run.readings.parts(name)}
    return {name: prompts[name] for name in prompts if name in parts}


def _read_again(run: Run, prompts: dict[str, str]) -> None:
    from cortex.flows.asking_model.writing import read_again

    read_again(run, prompts)


def _plan_again(context: Context, run: Run, prompts: dict[str, str]) -> "PlannedStage | None":
    if not prompts:
        return None
    from cortex.flows.operations.maintain.cost import plan_again

    planned = plan_again(context, run, prompts)
    return planned if planned.sessions else None


def _keep(run: Run, seconds: float) -> None:
    run.report.rows = row_counts(run)
    run.report.seconds = seconds
    keep_report(run.store.runs, run.report)
