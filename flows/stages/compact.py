"""The stage compact: partitions of many small files become one file each."""

from cortex.flows.publishing.passages import kept_cut
from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage
from cortex.transforms.schemas import TURNS

LAKE = "turns events settled replies journal calls vectors"


@stage(reads=LAKE, writes=LAKE)
def compact(run: Run) -> None:
    """
    Rewrite each crowded partition as one file, so that a thousand runs leave no thousand files.

    Done after each stage that adds many files and before what is made from them, since that is known by the
    names of the files. The calls of tools that were noted since the last run come into the lake first.
    """
    run.store.calls.take_in()
    crowded = run.store.lake.crowded()
    if not crowded:
        return
    with run.report.stage("compact") as row:
        for table, part in crowded:
            with run.outcome.without_damage(part):
                if table is TURNS:
                    run.store.lake.compact(table, part, kept_cut(run, part))
                else:
                    run.store.lake.compact(table, part)
                row.rows_out += 1
        row.note = "rows out: partitions"
