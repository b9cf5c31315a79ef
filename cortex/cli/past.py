"""What `--as-of DATE` gives the commands: the store as it was on an earlier day."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from cortex.cli.present import present
from cortex.flows.as_of import as_of, end_of
from cortex.flows.run import Run
from cortex.flows.runs import looking
from cortex.transforms.errors import UsageError
from cortex.transforms.memory.as_of import journal_until
from cortex.transforms.memory.metrics import session_metrics
from cortex.transforms.schemas import EDGES, EVENTS, GLOBAL_SCOPE, JOURNAL, MEMORIES, METRICS, TURNS, Table


def store_as_of(date: str, scopes: Sequence[str] | None = None, *, searchable: bool = False) -> Run:
    """
    Return the store as it was at the end of a UTC day, `date` as `2026-09-14`; default: every scope.

    Raises UsageError for what is no such date, and for days to come.
    """
    try:
        day = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"'{date}' is no date.", "Write year-month-day: --as-of 2026-09-14") from error
    run = looking(present())
    if day > run.day:
        raise UsageError(f"{date} is still to come.", "Give today or an earlier day.")
    return as_of(run, day, run.readings.scopes() if scopes is None else scopes, searchable=searchable)


def tables_of(past: Run) -> dict[str, pa.Table]:
    """Return what `cortex sql` asks, by name: the lake's tables and the projections as they were."""
    scopes = [scope for scope in past.readings.scopes() if scope != GLOBAL_SCOPE]
    events = [pa.concat_tables([EVENTS.empty(), past.readings.events(s)]) for s in past.readings.scopes()]
    metrics = [
        session_metrics(past.readings.turns(scope), past.readings.events(scope), past.policy)
        for scope in scopes
    ]
    return {
        "turns": pa.concat_tables([TURNS.empty(), *(past.readings.turns(scope) for scope in scopes)]),
        "events": pa.concat_tables([EVENTS.empty(), *events]),
        "journal": pa.concat_tables(
            [JOURNAL.empty(), journal_until(past.store.journal.read(), end_of(past))]
        ),
        "metrics": pa.concat_tables([METRICS.empty(), *metrics]),
        "memories": _projected(past, MEMORIES),
        "edges": _projected(past, EDGES),
    }


def _projected(past: Run, table: Table) -> pa.Table:
    rows = [
        past.store.tables.open(scope, table.name).read().cast(table.arrow) for scope in past.readings.scopes()
    ]
    return pa.concat_tables([table.empty(), *rows])
