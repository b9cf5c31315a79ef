"""Comparison: the live tables and briefs against what the lake says, cell by cell; nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.briefs import archive_of, brief_made_from, brief_of
from cortex.flows.hook_notes import notes_made_from
from cortex.flows.rebuild import Afresh, afresh, make_tables
from cortex.flows.run import Run
from cortex.storage.journal import Journal
from cortex.storage.notes import Output
from cortex.storage.store import Store
from cortex.storage.tables import INDEX_TEXT, PROJECTED, SEARCHED, VECTOR, Dataset, Filter, Vector, meeting
from cortex.transforms.schemas import GLOBAL_SCOPE, Row

# How far back the day of the live memories is looked for: a store left alone for ten years.
DAYS_LOOKED_BACK = 3_650
HAS_VECTOR = "has_vector"


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

    def replace(self, scope: str, name: str, rows: pa.Table) -> int:
        """Keep the rows; return how many."""
        self._rows[scope, name] = rows
        return int(rows.num_rows)

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

    def search_words(self, query: str, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        return self.rows.slice(0, 0)

    def search_vector(self, vector: Vector, limit: int, columns: Sequence[str] = ()) -> pa.Table:
        return self.rows.slice(0, 0)


class _Committed(Journal):
    """The journal without the entries that wait for a run."""

    def waiting(self) -> list[Row]:
        return []


def compare(run: Run) -> Comparison:
    """
    Make every table in memory from the lake and compare it with the live one, row for row.

    Vectors are those of the lake. Each scope is compared as of the day on which its live memories were aged,
    and with the journal as it was then: entries that wait count only where they were used already. Where
    the live tables were made from something else than the lake holds now, a note says so.
    """
    found = Comparison()
    made: dict[tuple[datetime, bool], Afresh] = {}
    for scope in sorted({*run.scopes(), *run.store.tables.scopes()}):
        made_on = _made_on(run, scope)
        day, is_committed = made_on or (run.day, True)
        if made_on is None and run.store.tables.open(scope, "memories").count():
            found.notes.append(f"{scope}: the lake has changed since its tables were made: `cortex run`")
        if (day, is_committed) not in made:
            made[day, is_committed] = _variant(run, day, is_committed)
            make_tables(made[day, is_committed])
        rebuilt = made[day, is_committed]
        if day != run.day:
            found.notes.append(f"{scope}: compared as of {day:%Y-%m-%d}, the day of its live tables")
        for table in PROJECTED:
            _compare_table(run, rebuilt, scope, table, found)
        if scope != GLOBAL_SCOPE:
            _compare_brief(run, rebuilt, scope, found)
    return found


def _variant(run: Run, day: datetime, is_committed: bool) -> Afresh:
    """Return a run that makes tables in memory as of `day`, with or without the journal's waiting entries."""
    store = Store(run.store.home)
    store.lake.manifest = run.store.lake.manifest
    if is_committed:
        store.journal = _Committed(store.home, store.lake)
    variant = afresh(run, store, RowsInMemory(), day)
    variant.lacks_vectors = True  # what the lake has no vector for is not embedded
    return variant


def _made_on(run: Run, scope: str) -> tuple[datetime, bool] | None:
    """Return the day and the journal (committed only, or not) that a scope's memories were made from."""
    noted = run.store.lake.notes.made.get(Output("decay", scope))
    for is_committed in (True, False):
        of_day = _variant(run, run.day, is_committed).aged_inputs_by_day(scope)
        for back in range(DAYS_LOOKED_BACK):
            day = run.day - timedelta(days=back)
            if of_day(day) == noted:
                return day, is_committed
    return None


def _compare_table(run: Run, rebuilt: Run, scope: str, table: str, found: Comparison) -> None:
    live_rows = _comparable(run.store.tables.open(scope, table), table)
    made_rows = _comparable(rebuilt.store.tables.open(scope, table), table)
    found.rows += made_rows.num_rows
    if live_rows.equals(made_rows):
        return
    (key,) = PROJECTED[table].key
    live = {row[key]: row for row in live_rows.to_pylist()}
    made = {row[key]: row for row in made_rows.to_pylist()}
    for name in sorted({*live, *made}):
        one, other = live.get(name), made.get(name)
        if one is None or other is None:
            told = ("missing" if one is None else "there", "missing" if other is None else "there")
            found.differences.append(Difference(scope, table, name, "", *told))
            continue
        for column in {**one, **other}:
            if one.get(column) != other.get(column):
                cells = (str(one.get(column)), str(other.get(column)))
                found.differences.append(Difference(scope, table, name, column, *cells))


def _comparable(dataset: Dataset, table: str) -> pa.Table:
    """Return a dataset's rows by key: the schema's columns, the indexed text, whether there is a vector."""
    declared = PROJECTED[table].arrow.names
    if table not in SEARCHED or not dataset.count():
        return dataset.read().select(declared).combine_chunks()
    rows, vectors = dataset.read([*declared, INDEX_TEXT]), dataset.read([VECTOR])
    if VECTOR in vectors.schema.names:
        rows = rows.append_column(HAS_VECTOR, pc.is_valid(vectors[VECTOR]))
    return rows.combine_chunks()


def _compare_brief(run: Run, rebuilt: Run, scope: str, found: Comparison) -> None:
    """Compare the published brief and what goes with it, unless of another day or repository state."""
    if run.store.lake.notes.made.get(Output("render", scope)) != brief_made_from(rebuilt, scope):
        found.notes.append(f"{scope}: its brief is of another day or state of the repository: not compared")
        return
    published = run.store.published
    for name, live, made in (
        ("brief", published.brief(scope), brief_of(rebuilt, scope)),
        ("archive", published.archive(scope), archive_of(rebuilt, scope)),
        ("hook index", published.hook_index_made_from(scope), notes_made_from(rebuilt, scope)),
    ):
        found.rows += 1
        if live != made:
            found.differences.append(Difference(scope, name, scope, "text", live, made))
