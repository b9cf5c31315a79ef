"""The stage link: the memories of each scope are compared with their neighbours."""

from functools import partial

from cortex.flows.report import StageReport
from cortex.flows.run import Run
from cortex.flows.stages.stage import stage
from cortex.transforms.audit import edges_violations
from cortex.transforms.memory.link import edges_between as links_between
from cortex.transforms.memory.review import settled_edges


@stage(reads="turns events journal vectors", writes="edges")
def link(run: Run) -> None:
    """Compare the memories of each scope with their neighbours and keep the edges."""
    with run.report.stage("link") as row:
        for scope in run.readings.scopes():
            with run.outcome.apart(scope, "link"):
                inputs = run.fingerprints.linked(scope)
                if not run.ledger.has_made("link", scope, inputs):
                    _link(run, scope, inputs, row)
    run.embedding.linked_with = run.embedding.model


def _link(run: Run, scope: str, inputs: str, row: StageReport) -> None:
    memories = run.readings.memories(scope)
    edges = links_between(memories, run.readings.vectors(), run.policy, run.embedding.model)
    edges = settled_edges(edges, run.readings.merged_journal(scope))
    if run.outcome.passes(scope, edges.num_rows, partial(edges_violations, edges, memories)):
        row.rows_in += memories.num_rows
        row.rows_out += run.store.tables.replace(scope, "edges", edges)
        run.ledger.note_output("link", scope, inputs)
