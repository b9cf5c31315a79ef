"""What the last snapshots hold of scopes that have not changed since: a run makes only what it touched."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cortex.flows.run.run import Run
from cortex.storage.lake.notes import Output
from cortex.storage.published.snapshots import SnapshotFile
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import EDGES, MEMORIES, METRICS, PROJECTS, SESSIONS, Row, Table

# Raise it when the code that makes snapshots makes other rows of the same inputs.
SNAPSHOTS_VERSION = "1"
# Snapshots of what the tables hold on a day; the others follow from what was said alone.
OF_TABLES = (MEMORIES, EDGES, PROJECTS)
OF_SESSIONS = (METRICS, SESSIONS)


@dataclass(frozen=True)
class Snapshots:
    """
    The last snapshots, by table; of a scope their rows are what a run would make again, or are not given.

    `fingerprints` has one of what each scope's rows are made from in this run, by table and scope; without it
    they are not reused.
    """

    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, SnapshotFile] = field(default_factory=dict)

    def rows_of(self, table: Table, scope: str) -> pa.Table | None:
        """Return a scope's rows; None if they are to be made."""
        file, state = self.files.get(table.name), self.fingerprints.get(table.name, {}).get(scope)
        if file is None or state is None or file.fingerprints.get(scope) != state:
            return None
        return file.rows_of(scope)

    def row_of(self, table: Table, scope: str) -> Row | None:
        """Return the one row of a scope; None if it is to be made."""
        rows = self.rows_of(table, scope)
        return rows.to_pylist()[0] if rows is not None and rows.num_rows == 1 else None


def last_snapshots(run: Run) -> Snapshots:
    """Return what can be reused of the published snapshots; a scope that failed keeps nothing of them."""
    fingerprints = {table.name: _fingerprints_of(run, table) for table in (*OF_TABLES, *OF_SESSIONS)}
    files = {table.name: run.store.published.snapshot(table) for table in (*OF_TABLES, *OF_SESSIONS)}
    return Snapshots(fingerprints, files)


def _fingerprints_of(run: Run, table: Table) -> dict[str, str]:
    outputs, states = run.ledger.notes.outputs, {}
    for scope in run.readings.scopes():
        noted = [outputs.get(Output(stage, scope), "") for stage in ("embed", "link", "decay")]
        if scope in run.outcome.failed or not all(noted):
            continue
        version = (SNAPSHOTS_VERSION, str(table.version))
        state = noted if table in OF_TABLES else [run.fingerprints.inputs(scope)]
        states[scope] = content_id(*version, *state)
    return states


NOTHING_KNOWN = Snapshots()
