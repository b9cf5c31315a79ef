"""The stage link: the memories of each scope are compared with their neighbours."""

from functools import partial

import pyarrow as pa

from cortex.flows.context.run_report import StageReport
from cortex.flows.run.run import Run
from cortex.flows.run.verdicts import answer_about, verdicts_of
from cortex.flows.stages.stage import stage
from cortex.transforms.audit import edges_violations
from cortex.transforms.memory.link import edges_between as links_between
from cortex.transforms.schemas import REPLIES
from cortex.transforms.views.review import settled_edges


@stage(reads="turns events replies journal vectors", writes="edges")
def link(run: Run) -> None:
    """Compare the memories of each scope with their neighbours and keep the edges."""
    with run.report.stage("link") as row:
        for scope in run.readings.scopes():
            with run.outcome.apart(scope, "link"):
                inputs = run.fingerprints.linked(scope)
                if not run.ledger.has_made("link", scope, inputs):
                    _link(run, scope, inputs, row)


def _link(run: Run, scope: str, inputs: str, row: StageReport) -> None:
    memories = run.readings.memories(scope)
    edges = links_between(memories, run.readings.vectors(), run.policy, run.embedding.model)
    edges = _with_answer(run, scope, _with_closings(run, scope, edges, memories), memories)
    edges = _with_verdicts(run, scope, edges, memories)
    edges = settled_edges(edges, run.readings.merged_journal(scope))
    if run.outcome.passes(scope, edges.num_rows, partial(edges_violations, edges, memories)):
        row.rows_in += memories.num_rows
        row.rows_out += run.store.tables.replace(scope, "edges", edges)
        run.ledger.note_output("link", scope, inputs)


def _with_closings(run: Run, scope: str, edges: pa.Table, memories: pa.Table) -> pa.Table:
    """Return a scope's edges with those to what a language model says is no longer true."""
    lake = run.store.lake
    parts = set(run.readings.parts(scope)) & set(lake.manifest.partitions(REPLIES.name))
    if not parts:
        return edges
    # Imported here: if no language model has answered none of this is loaded.
    from cortex.transforms.writer.closing_edges import REPLY_COLUMNS, with_closings

    replies = [lake.read(REPLIES, part, columns=REPLY_COLUMNS) for part in sorted(parts)]
    return with_closings(edges, memories, pa.concat_tables(replies), run.readings.events(scope))


def _with_verdicts(run: Run, scope: str, edges: pa.Table, memories: pa.Table) -> pa.Table:
    """Return a scope's edges as a language model says that their ends stand to each other."""
    verdicts = verdicts_of(run, scope)
    if not verdicts:
        return edges
    from cortex.transforms.writer.verdicts import with_verdicts

    return with_verdicts(edges, memories, verdicts)


def _with_answer(run: Run, scope: str, edges: pa.Table, memories: pa.Table) -> pa.Table:
    """Return a scope's edges as a language model that read the whole of it says."""
    answer = answer_about(run, scope)
    if answer is None:
        return edges
    from cortex.transforms.writer.project import with_project_answer

    return with_project_answer(edges, memories, answer)
