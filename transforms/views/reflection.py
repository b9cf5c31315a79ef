"""What of a memory is not settled: what sessions left open, what is at odds, what may no longer hold."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.evidence.statements import outcome_parts
from cortex.transforms.brief.eligible import is_plan
from cortex.transforms.policy import Policy
from cortex.transforms.views.review import Item
from cortex.transforms.words.sentences import excerpt

OPEN, CONTRADICTORY, STALE = "open", "contradictory", "stale"
POINT_KINDS = (OPEN, CONTRADICTORY, STALE)
# Enough of a session's goal to know it again.
SESSION_CHARS = 100

_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "text", "status", "confidence", "is_pinned"),
    *("updated_at",),
]


@dataclass(frozen=True)
class Point:
    """
    One thing that is not settled.

    `kind` is one of POINT_KINDS; `memory_ids` are the memories it rests on (of a contradiction the older
    first), `texts` what they say of it, `reason` why it is a point; `since` when it was last said.
    """

    kind: str
    project_id: str
    memory_ids: tuple[str, ...]
    texts: tuple[str, ...]
    reason: str
    since: datetime | None = None


def open_points(memories: pa.Table, policy: Policy) -> list[Point]:
    """
    Return what the outcome records and plans of MEMORIES left open, newest first.

    A record that has faded says nothing: of an old session the repository knows better what is open.
    """
    is_sure = pc.field("confidence") >= policy.threshold("archive_below_confidence")
    active = memories.filter((pc.field("status") == "active") & is_sure)
    points = []
    for row in active.filter(pc.field("memory_type") == "outcome").select(_COLUMNS).to_pylist():
        record = outcome_parts(row["text"])
        parts = tuple(part.strip() for part in record.get("open", "").split("; ") if part.strip(" ."))
        if parts:
            points.append(
                _point(OPEN, row, parts, _left_open(record.get("goal") or record.get("outcome", "")))
            )
    for row in active.filter(is_plan()).select(_COLUMNS).to_pylist():
        points.append(_point(OPEN, row, (row["text"],), "a plan with steps to do"))
    return sorted(points, key=_newest_first)


def fading_points(memories: pa.Table, policy: Policy) -> list[Point]:
    """Return the active claims of MEMORIES that no brief shows any more because of their age."""
    limit = policy.threshold("archive_below_confidence")
    is_claim = pc.field("memory_type").isin(pa.array(sorted(policy.types_with("is_claim")), pa.string()))
    is_fading = (pc.field("status") == "active") & (pc.field("confidence") < limit)
    rows = memories.filter(is_claim & is_fading & ~pc.field("is_pinned")).select(_COLUMNS).to_pylist()
    points = [
        _point(STALE, row, (row["text"],), f"fading: its confidence has sunk to {row['confidence']:.2f}")
        for row in rows
    ]
    return sorted(points, key=_newest_first)


def points_of_review(items: Iterable[Item], kind: str) -> list[Point]:
    """Return what a review lists as points of a kind."""
    return [Point(kind, item.project_id, item.memory_ids, item.texts, item.detail) for item in items]


def _left_open(session: str) -> str:
    """Return why a point is open; "not pushed" alone does not say what was not."""
    about = excerpt(session.rstrip(" ."), SESSION_CHARS)
    return f"left open by the session “{about}”" if about else "left open by a session"


def _point(kind: str, row: dict[str, object], texts: tuple[str, ...], reason: str) -> Point:
    since = row["updated_at"]
    assert isinstance(since, datetime)
    return Point(kind, str(row["project_id"]), (str(row["memory_id"]),), texts, reason, since)


def _newest_first(point: Point) -> tuple[float, tuple[str, ...]]:
    return (-point.since.timestamp() if point.since else 0.0, point.memory_ids)
