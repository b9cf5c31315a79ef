"""Cortex as a library: a store's operations as methods of one object."""

from collections.abc import Callable
from datetime import datetime
from functools import update_wrapper
from pathlib import Path
from typing import Concatenate, ParamSpec, Self, TypeVar

from cortex.flows.context import Context, EmbedderOf, utc_now
from cortex.flows.embedders import embedder_in_force
from cortex.flows.operations.ask import brief, reasoning, recall, sql
from cortex.flows.operations.edit import forget, projects, remember, review
from cortex.flows.operations.edit import remember as edit
from cortex.flows.operations.edit import remember as index_code
from cortex.flows.operations.edit import remember as learn
from cortex.flows.operations.edit import review as merges
from cortex.flows.operations.maintain import intake, rebuild, report, status
from cortex.flows.operations.share import exchange
from cortex.storage.settings.settings import load_settings

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def _method(
    operation: Callable[Concatenate[Context, Parameters], Returned],
) -> Callable[Concatenate["Memory", Parameters], Returned]:
    """Return an operation as a method that gives it the context."""

    def method(memory: "Memory", /, *values: Parameters.args, **options: Parameters.kwargs) -> Returned:
        return operation(memory.context, *values, **options)

    return update_wrapper(method, operation)


class Memory:
    """
    The memory in a store: `Memory().recall("which database")`.

    Its methods are the operations of the command line. They return values, print nothing and ask nothing;
    what they refuse, they raise as a CortexError. A change made while another run writes is kept and acts
    with the next one, as `applied` of its result says.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        embedder_of: EmbedderOf = embedder_in_force,
        clock: Callable[[], datetime] = utc_now,
        folder: Path | str | None = None,
    ) -> None:
        """
        Open the store in the folder `home`, by default CORTEX_HOME, else ~/.cortex.

        `embedder_of` gives the embedding model for the settings, or None for search by words alone; `clock`
        the present instant (UTC). `folder` is the one whose project is meant if none is named, by default
        the current one. Raises UsageError if the settings cannot be read.
        """
        settings = load_settings(Path(home).expanduser().absolute() if home else None)
        self.context = Context(
            settings, embedder_of, clock, Path(folder).absolute() if folder else Path.cwd()
        )

    @classmethod
    def of(cls, context: Context) -> Self:
        """Return the memory of a context."""
        memory = cls.__new__(cls)
        memory.context = context
        return memory

    # The method that is named after its module comes last: below it the name is the method.
    remember = _method(remember.remember)
    recall = _method(recall.recall)
    reflect = _method(reasoning.reflect)
    infer = _method(reasoning.infer)
    learn = _method(learn.learn)
    explain_briefs = _method(brief.explain_briefs)
    read_briefs = _method(brief.read_briefs)
    read_stats = _method(report.read_stats)
    read_effect = _method(report.read_effect)
    read_status = _method(status.read_status)
    query_tables = _method(sql.query_tables)
    plan_backfill = _method(intake.plan_backfill)
    backfill = _method(intake.backfill)
    run_flow = _method(intake.run_flow)
    compare_tables = _method(rebuild.compare_tables)
    rebuild_tables = _method(rebuild.rebuild_tables)
    rederive = _method(rebuild.rederive)
    pin = _method(edit.pin)
    unpin = _method(edit.unpin)
    confirm = _method(edit.confirm)
    supersede = _method(edit.supersede)
    undo_supersede = _method(edit.undo_supersede)
    edit = _method(edit.edit)
    index_code = _method(index_code.index_code)
    resolve_items = _method(review.resolve_items)
    review = _method(review.review)
    checkpoint = _method(merges.checkpoint)
    propose_merges = _method(merges.propose_merges)
    consolidate = _method(merges.merge_duplicates)
    undo_merges = _method(merges.undo_merges)
    plan_forget = _method(forget.plan_forget)
    forget_session = _method(forget.forget_session)
    plan_reset = _method(forget.plan_reset)
    reset = _method(forget.reset)
    forget = _method(forget.forget)
    list_projects = _method(projects.list_projects)
    rename_project = _method(projects.rename_project)
    merge_projects = _method(projects.merge_projects)
    split_project = _method(projects.split_project)
    export = _method(exchange.export)
    import_memories = _method(exchange.import_memories)
    restore = _method(exchange.restore)
    backup = _method(exchange.backup)
