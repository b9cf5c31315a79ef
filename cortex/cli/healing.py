"""Tables and published files that are missing or damaged are rebuilt, whatever command met them."""

from dataclasses import replace

from cortex.cli.answer import ContextSource, context_from
from cortex.cli.terminal import hint
from cortex.flows.context.context import Context
from cortex.flows.engines.engines import run_plain
from cortex.flows.engines.runs import opened
from cortex.flows.stages.order import PROJECTION
from cortex.transforms.errors import CortexError, TablesDamaged


def heal(error: TablesDamaged, source: ContextSource) -> Context:
    """
    Rebuild what `error` names and return the context to call the command with once more.

    Where that is not possible (another run writes, the store is read-only, the lake is damaged), say so: the
    command then shows what is there.
    """
    context = context_from(source)
    hint(f"cortex: {error.problem} Rebuilding it from the lake.")
    try:
        with opened("tables", context) as run:
            if error.scope is not None:
                run.store.tables.drop(error.scope)
            else:
                run.store.published.drop_database()
            run_plain(PROJECTION, run)
    except CortexError as problem:
        hint(f"cortex: {problem} [{problem.code}]")
        return replace(context, checks_projections=False)
    return context
