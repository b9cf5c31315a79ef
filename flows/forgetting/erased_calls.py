"""What erasing leaves of the audit log: no call of a project that was reset, none of before what is kept."""

from collections.abc import Mapping
from datetime import datetime

import pyarrow.compute as pc

from cortex.storage.lake.lake import Change, Lake
from cortex.transforms.memory.retention import Retention
from cortex.transforms.schemas import CALLS


def erase_calls(
    lake: Lake, change: Change, reset_until: Mapping[str, datetime], retention: Retention
) -> None:
    """
    Drop the calls that were noted in a project up to its reset, and all of before what is kept.

    `reset_until` has the instant of the reset by project. A call has no words: forgetting a memory or session
    leaves nothing of it here.
    """
    for project_id in lake.manifest.partitions(CALLS.name):
        rows = lake.read(CALLS, project_id)
        kept = rows
        if project_id in reset_until:
            kept = kept.filter(pc.field("called_at") > reset_until[project_id])
        since = retention.of(project_id).since
        if since is not None:
            kept = kept.filter(pc.field("called_at") >= since)
        if kept.num_rows < rows.num_rows:
            change.replace(CALLS, project_id, kept)
