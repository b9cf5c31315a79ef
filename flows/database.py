"""What `memory.duckdb` is made from: the tables of every scope and the counts of its sessions."""

from collections.abc import Sequence

import pyarrow as pa

from cortex.flows.run import Run
from cortex.storage.store import DATABASE
from cortex.transforms.errors import FileDamaged
from cortex.transforms.memory.metrics import session_metrics
from cortex.transforms.schemas import EDGES, EVENTS, GLOBAL_SCOPE, MEMORIES, METRICS


def publish_database(run: Run, scopes: Sequence[str], inputs: str) -> None:
    """Publish `memory.duckdb` and the counts; where a file of the lake is damaged the last good ones stay."""
    published, merged = run.store.published, run.store.projects.merged()
    tables = _all(run, "memories"), _all(run, "edges"), _metrics(run)
    try:
        if not run.outcome.damages:
            published.publish_database(run.store.lake, *tables, merged)
    except FileDamaged as error:
        run.outcome.damages.append(error)
    if run.outcome.damages:
        return
    published.publish_counts({scope: _active(run, scope) for scope in scopes})
    run.ledger.note_output(*DATABASE, inputs)


def _active(run: Run, scope: str) -> int:
    return run.store.tables.open(scope, "memories").read(["memory_id"], {"status": ["active"]}).num_rows


def _metrics(run: Run) -> pa.Table:
    """Return METRICS of every session."""
    rows = [METRICS.empty()]
    for scope in run.readings.scopes():
        with run.outcome.apart(scope, "metrics"):
            if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
                continue
            events = [run.store.lake.read(EVENTS, part) for part in run.readings.parts(scope)]
            rows.append(session_metrics(run.readings.turns(scope), pa.concat_tables(events), run.policy))
    return pa.concat_tables(rows)


def _all(run: Run, name: str) -> pa.Table:
    empty = (MEMORIES if name == "memories" else EDGES).empty()
    return pa.concat_tables(
        [empty, *(run.store.tables.open(s, name).read().cast(empty.schema) for s in run.readings.scopes())]
    )
