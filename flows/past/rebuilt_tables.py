"""Rebuild: tables made from the lake alone and put in place of the live ones, kill-safe (law 1)."""

from collections.abc import Sequence

from cortex.flows.context.run_report import RunReport
from cortex.flows.embedders.embedding import Embedding
from cortex.flows.run.ledger import FreshLedger
from cortex.flows.run.run import Run
from cortex.flows.stages.guard import guard
from cortex.flows.stages.order import PUBLISH, TABLES
from cortex.storage.lake.notes import REPLACED_BY
from cortex.storage.store import DATABASE, Store
from cortex.storage.tables.tables import StoredTables


def rebuild(run: Run, only: Sequence[str] | None = None) -> None:
    """
    Make new tables from the lake, replace the live ones with them, publish again.

    Vectors come from the lake; only texts without one are embedded. Killed before the swap nothing has
    changed; killed within it, the notes of what was made are gone and the next run makes the rest again.
    A scope whose audit fails keeps its live tables. Raises LossRefused, before anything is replaced, if
    much of what is shown would be gone. `only` names the scopes to replace (default: all).
    """
    with run.report.stage("rebuild") as row:
        run.store.journal.take_in()
        guard(run)
        tables = run.store.rebuilt_tables()
        tables.remove()
        rebuilt = _rebuilt(run, tables)
        run.store.lake.manifest = rebuilt.store.lake.manifest  # texts without a vector were embedded
        run.outcome.failed |= rebuilt.outcome.failed
        run.report.violations += rebuilt.report.violations
        scopes = {*run.store.tables.scopes(), *tables.scopes()} - rebuilt.outcome.failed
        replaced = sorted(scopes if only is None else scopes & set(only))
        _forget_outputs(run, replaced)
        row.rows_out = sum(map(tables.put_in_place, replaced))
        run.store.lake.note(rebuilt.ledger.notes.of_scopes(replaced).in_place_of(run.store.lake.notes))
        tables.remove()
        row.note = f"{len(replaced)} scopes"
    _publish(run)


def _publish(run: Run) -> None:
    for publishing in PUBLISH:
        publishing(run)


def _rebuilt(run: Run, tables: StoredTables) -> Run:
    """Return a run that has made all tables from the lake, by the stages that every run uses."""
    store = Store(run.store.home)
    store.tables = tables
    report, embedding = RunReport("rebuild", "plain", run.now), Embedding(run.embedding.embedder)
    rebuilt = Run(
        store, run.settings, run.policy, run.now, report, embedding, run.progress, ledger_type=FreshLedger
    )
    for table_stage in TABLES:
        table_stage(rebuilt)
    return rebuilt


def _forget_outputs(run: Run, scopes: Sequence[str]) -> None:
    """Forget that these scopes' tables and what is published of them were made."""
    with run.store.lake.change() as change:
        notes = change.notes.without_outputs(REPLACED_BY, scopes)
        change.notes = notes.without_outputs({DATABASE.stage}, {DATABASE.scope})
