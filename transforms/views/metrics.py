"""How each session went, from the first day on: the figures by which memory must prove its worth."""

import pyarrow as pa

from cortex.hooks.prose.sources import EDIT_TOOLS, READ_TOOLS
from cortex.transforms.database import query
from cortex.transforms.extract.ground.phrases import Phrasebook
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import METRICS
from cortex.transforms.views.repeated_decisions import repeats_of

TURN_COLUMNS = ["project_id", "session_id", "agent_id", "kind", "said_at", "text", "tool_name"]
EVENT_COLUMNS = [
    *("event_id", "project_id", "session_id", "event_type", "memory_type", "text", "rejected", "confidence"),
    "said_at",
]
COLUMNS = tuple(METRICS.arrow.names[3:])  # the counts and times, in the order they are shown


def session_metrics(turns: pa.Table, events: pa.Table, policy: Policy) -> pa.Table:
    """
    Return METRICS, one row a session, ordered by project and session.

    Takes TURNS and EVENTS, each row once. A duplicate decision says what one of an earlier session of the
    project said; a re-proposal settles on what an earlier session rejected; a file read again in one session
    counts each further time; a correction is a refused call with words or a prompt that complains. Minutes to
    the first edit are counted from the session's first turn and are null if nothing was edited.
    """
    events_read = events.select(EVENT_COLUMNS)
    rows = query(
        "metrics",
        {
            "edit_tools": sorted(EDIT_TOOLS),
            "read_tools": sorted(READ_TOOLS),
            "complaint": Phrasebook.of(policy).complaint.pattern.pattern,
            "shown_min_confidence": policy.threshold("shown_min_confidence"),
        },
        turns=turns.select(TURN_COLUMNS),
        events=events_read,
        repeats=repeats_of(events_read, policy),
    )
    return rows.cast(METRICS.arrow)
