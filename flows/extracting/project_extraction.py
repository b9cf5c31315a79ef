"""
What extraction needs to know of a project besides its turns: lines it was shown, and turns that lost words.
"""

import pyarrow as pa

from cortex.flows.reading.extraction import Extraction
from cortex.flows.run.run import Run
from cortex.transforms.extract.ground.settled import NOTHING_SETTLED, Settled
from cortex.transforms.schemas import EVENTS, SETTLED


def extraction_of(run: Run, project_id: str, turns: pa.Table) -> Extraction:
    """Return what is to be extracted of TURNS of a project, whole sessions."""
    return Extraction(turns, run.readings.shown_lines(project_id), settled_of(run, project_id))


def settled_of(run: Run, project_id: str) -> Settled:
    """Return the turns of a project that nothing is extracted from again."""
    settled = run.store.lake.read(SETTLED, project_id)
    if not settled.num_rows:
        return NOTHING_SETTLED
    return Settled.of(settled, run.store.lake.read(EVENTS, project_id))
