"""The verdicts of a language model on pairs of memories, as the replies in the lake hold them."""

from collections.abc import Mapping

import pyarrow as pa

from cortex.flows.run.run import Run
from cortex.transforms.memory.neighbours import Pairs
from cortex.transforms.schemas import GLOBAL_SCOPE, REPLIES


def verdicts_of(run: Run, scope: str) -> Mapping[str, str]:
    """Return the verdict on each pair of a scope that was asked about, by name."""
    lake = run.store.lake
    parts = {GLOBAL_SCOPE} if scope == GLOBAL_SCOPE else set(run.readings.parts(scope))
    parts &= set(lake.manifest.partitions(REPLIES.name))
    if not parts:
        return {}
    # Imported here: where no language model has answered none of this is loaded.
    from cortex.transforms.writer.verdicts import VERDICT_COLUMNS, kept_verdicts

    replies = [lake.read(REPLIES, part, columns=VERDICT_COLUMNS) for part in sorted(parts)]
    return kept_verdicts(pa.concat_tables(replies))


def same_pairs_of(run: Run, scope: str, memories: pa.Table) -> Pairs:
    """Return the pairs of a scope that say the same, by a language model; takes its MEMORIES."""
    verdicts = verdicts_of(run, scope)
    if not verdicts:
        return {}
    from cortex.transforms.writer.verdicts import same_pairs

    return same_pairs(memories, run.store.tables.open(scope, "edges").read(), verdicts)
