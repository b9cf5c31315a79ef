"""Comparison: the live tables and briefs against what the lake says, cell by cell; nothing is changed."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.run_report import RunReport
from cortex.flows.embedders.embedding import Embedding
from cortex.flows.publishing.briefs import (
    archive_of,
    draft_of,
    rendered_from,
    shown_everywhere,
)
from cortex.flows.run.ledger import FreshLedger
from cortex.flows.run.run import Run
from cortex.flows.stages.order import TABLES
from cortex.storage.lake.journal import Journal
from cortex.storage.lake.notes import Output
from cortex.storage.store import Store
from cortex.storage.tables.tables import (
    HAS_VECTOR,
    INDEX_TEXT,
    PROJECTED,
    SEARCHED,
    VECTOR,
    Dataset,
    Filter,
    SearchableRows,
    meeting,
)
from cortex.transforms.schemas import GLOBAL_SCOPE

# How far back the day of the live memories is looked for: a store left alone for ten years.
DAYS_LOOKED_BACK = 3_650


@dataclass(frozen=True)
class Difference:
    """One cell, or one whole row (`column` empty), that the live tables and the lake say differently."""

    scope: str
    table: str
    key: str
    column: str
    live: str | None
    rebuilt: str | None


@dataclass
class Comparison:
    """What was found: every difference, how many rows were compared, and what to know of it."""

    differences: list[Difference] = field(default_factory=list)
    rows: int = 0
    notes: list[str] = field(default_factory=list)


class RowsInMemory:
    """Tables that keep their rows as they are: they are compared, not searched."""

    def __init__(self) -> None:
        """Make empty tables."""
        self._rows: dict[tuple[str, str], pa.Table] = {}

    def scopes(self) -> list[str]:
        """Return the scopes that have tables, sorted."""
        return sorted({scope for scope, _ in self._rows})

    def exists(self, scope: str, name: str) -> bool:
        """Return whether there is a table."""
        return (scope, name) in self._rows

    def open(self, scope: str, name: str) -> "_InMemory":
        """Return the rows put in; none before."""
        return _InMemory(name, self._rows.get((scope, name), PROJECTED[name].empty()))

    def reading_index(self, scopes: Sequence[str]) -> AbstractContextManager[sqlite3.Connection | None]:
        """Refuse: what is compared is not searched."""
        raise NotImplementedError

    def open_index(self, scopes: Sequence[str], name: str) -> SearchableRows:
        """Refuse: what is compared is not searched."""
        raise NotImplementedError

    def replace(self, scope: str, name: str, rows: pa.Table) -> int:
        """Keep the rows; return how many."""
        self._rows[scope, name] = rows
        return int(rows.num_rows)

    def update(self, scope: str, name: str, rows: pa.Table, where: Filter) -> int | None:
        """Refuse: what is compared is made as a whole."""
        return None

    def content_of(self, scope: str, name: str) -> str | None:
        """Return nothing: what is compared is made as a whole."""
        return None

    def settle_search(self, settings: str, ranks: Sequence[tuple[str, int]]) -> bool:
        """Do nothing: what is compared is not searched."""
        return False

    def mark_search(self, scope: str, marks: Mapping[str, str]) -> bool:
        """Do nothing: what is compared is not searched."""
        return False

    def purge(self, scope: str) -> None:
        """Do nothing: no older rows are kept."""

    def drop(self, scope: str) -> None:
        """Forget a scope's rows."""
        self._rows = {key: rows for key, rows in self._rows.items() if key[0] != scope}


@dataclass(frozen=True)
class _InMemory:
    name: str
    rows: pa.Table

    def count(self, where: Filter | None = None) -> int:
        return int(meeting(self.rows, where).num_rows)

    def read(self, columns: Sequence[str] = (), where: Filter | None = None) -> pa.Table:
        table = PROJECTED[self.name]
        by_key = meeting(self.rows, where).sort_by([(name, "ascending") for name in table.key])
        return by_key.select([name for name in columns or table.arrow.names if name in by_key.schema.names])


def compare(run: Run) -> Comparison:
    """
    Make every table in memory from the lake and compare it with the live one, row for row.

    Vectors are those of the lake. Each scope is compared as of the day on which its live memories were aged,
    and without the journal's waiting entries, which no run has used. If the live tables were made from
    something else than the lake holds now, a note says so.
    """
    comparison = Comparison()
    variants: dict[datetime, Run] = {}
    for scope in sorted({*run.readings.scopes(), *run.store.tables.scopes()}):
        aged_on = _aged_on(run, scope)
        day = aged_on or run.day
        if aged_on is None and run.store.tables.open(scope, "memories").count():
            comparison.notes.append(f"{scope}: the lake has changed since its tables were made: `cortex run`")
        if day not in variants:
            variants[day] = _variant(run, day)
            for table_stage in TABLES:
                table_stage(variants[day])
        variant = variants[day]
        if day != run.day:
            comparison.notes.append(f"{scope}: compared as of {day:%Y-%m-%d}, the day of its live tables")
        for table in PROJECTED:
            _compare_table(run, variant, scope, table, comparison)
        if scope != GLOBAL_SCOPE:
            _compare_brief(run, variant, scope, comparison)
    return comparison


def _variant(run: Run, day: datetime) -> Run:
    """Return a run that makes tables in memory as of `day`, without the journal's waiting entries."""
    store = Store(run.store.home)
    store.lake.manifest = run.store.lake.manifest
    store.journal = Journal(store.home, store.lake, counts_waiting=False)
    store.tables = RowsInMemory()
    return Run(
        store,
        run.settings,
        run.policy,
        day,
        RunReport("comparison", "plain", run.now),
        Embedding(run.embedding.embedder, is_asked=False),  # what the lake has no vector for is not embedded
        ledger_type=FreshLedger,
    )


def _aged_on(run: Run, scope: str) -> datetime | None:
    """Return the day of a scope's live memories; None if they were made from something else than now."""
    noted = run.store.lake.notes.outputs.get(Output("decay", scope))
    of_day = _variant(run, run.day).fingerprints.aged_by_day(scope)
    days = (run.day - timedelta(days=back) for back in range(DAYS_LOOKED_BACK))
    return next((day for day in days if of_day(day, ()) == noted), None)


def _compare_table(run: Run, variant: Run, scope: str, table: str, comparison: Comparison) -> None:
    live_rows = _comparable(run.store.tables.open(scope, table), table)
    variant_rows = _comparable(variant.store.tables.open(scope, table), table)
    comparison.rows += variant_rows.num_rows
    if live_rows.equals(variant_rows):
        return
    (key,) = PROJECTED[table].key
    live = {row[key]: row for row in live_rows.to_pylist()}
    rebuilt = {row[key]: row for row in variant_rows.to_pylist()}
    for name in sorted({*live, *rebuilt}):
        before, after = live.get(name), rebuilt.get(name)
        if before is None or after is None:
            sides = ("missing" if row is None else "there" for row in (before, after))
            comparison.differences.append(Difference(scope, table, name, "", *sides))
            continue
        for column in {**before, **after}:
            if before.get(column) != after.get(column):
                cells = (str(before.get(column)), str(after.get(column)))
                comparison.differences.append(Difference(scope, table, name, column, *cells))


def _comparable(dataset: Dataset, table: str) -> pa.Table:
    """Return a dataset's rows by key: the schema's columns, the indexed text, whether there is a vector."""
    declared = PROJECTED[table].arrow.names
    if table not in SEARCHED or not dataset.count():
        return dataset.read().select(declared).combine_chunks()
    rows = dataset.read([*declared, INDEX_TEXT, HAS_VECTOR, VECTOR])
    if VECTOR in rows.schema.names:
        rows = rows.append_column(HAS_VECTOR, pc.is_valid(rows[VECTOR])).drop_columns([VECTOR])
    return rows.combine_chunks()


def _compare_brief(run: Run, variant: Run, scope: str, comparison: Comparison) -> None:
    """Compare the published brief and what goes with it, unless of another day or repository state."""
    noted = run.store.lake.notes.outputs.get(Output("render", scope))
    if noted != rendered_from(variant, scope, shown_everywhere(variant)):
        comparison.notes.append(
            f"{scope}: its brief is of another day or state of the repository: not compared"
        )
        return
    published, draft = run.store.published, draft_of(variant, scope)
    for name, live, rebuilt in (
        ("brief", published.brief(scope), draft.brief),
        ("archive", published.archive(scope), archive_of(variant, scope)),
    ):
        comparison.rows += 1
        if live != rebuilt:
            comparison.differences.append(Difference(scope, name, scope, "text", live, rebuilt))
