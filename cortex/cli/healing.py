"""Tables and published files that are gone or damaged are made again, whatever command met them."""

from collections.abc import Iterator
from contextlib import contextmanager

from cortex.cli.present import checks_projections, present
from cortex.cli.terminal import hint
from cortex.flows.engines import run_plain
from cortex.flows.runs import opened
from cortex.flows.stages.order import PROJECT
from cortex.transforms.errors import CortexError, TablesDamaged


@contextmanager
def made_again(error: TablesDamaged) -> Iterator[None]:
    """
    Make again what `error` names, then let the block call the command once more.

    Where that is not possible (another run writes, the store is read-only, the lake is damaged), say so: the
    command then shows what is there.
    """
    hint(f"cortex: {error.problem} Making it again from the lake.")
    is_whole = True
    try:
        with opened("tables", present()) as run:
            if error.scope is not None:
                run.store.tables.drop(error.scope)
            else:
                run.store.published.drop_database()
            run_plain(PROJECT, run)
    except CortexError as problem:
        hint(f"cortex: {problem} [{problem.code}]")
        is_whole = False
    token = checks_projections.set(is_whole)
    try:
        yield
    finally:
        checks_projections.reset(token)
