"""How sure a memory was over time: drawn from when it was said and its project's clock."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row, values

DAY_MICROSECONDS = 86_400_000_000


def confidence_curve(
    memory: Row, clock: pa.Table, policy: Policy, now: datetime, *, points: int = 60
) -> list[tuple[datetime, float]]:
    """
    Return (instant, confidence from 0 to 1) from when a memory was first said up to `now`, in time order.

    Takes one row of MEMORIES and its scope's clock as `lifecycle.clock_of` gives it. Each time that it was
    said sets it back to its initial confidence; what its initial confidence was before the last time is not
    known, so that is taken for all of them. The half-life is today's.
    """
    times = sorted({memory["created_at"], memory["updated_at"], *_dates(memory)})
    begin, half_life_days = times[0], _half_life_days(memory, policy)
    span = max(now - begin, timedelta(hours=1))
    regular = [begin + span * at / (points - 1) for at in range(points)]
    before = [at - timedelta(microseconds=1) for at in times[1:]]
    instants = sorted({at for at in (*regular, *times, *before) if begin <= at <= now} or {begin})
    worked = _Worked(clock)
    initial = memory["initial_confidence"]
    curve = []
    for at in instants:
        since = times[bisect_right(times, at) - 1]
        days = max(worked(at) - worked(since), 0) / DAY_MICROSECONDS
        curve.append((at, initial if half_life_days is None else initial * 0.5 ** (days / half_life_days)))
    return curve


def _dates(memory: Row) -> list[datetime]:
    return [place["said_at"] for place in memory["evidence"] if place["said_at"]]


def _half_life_days(memory: Row, policy: Policy) -> float | None:
    """Return in how many days of work the memory loses half; None for one that does not fade."""
    rows = policy.tables["memory_types"].select(["memory_type", "half_life_days"]).to_pylist()
    days = {row["memory_type"]: row["half_life_days"] for row in rows}[memory["memory_type"]]
    if memory["is_pinned"] or days is None:
        return None
    growth = policy.threshold("half_life_growth")
    is_frequent = memory["access_count"] > policy.threshold("frequent_access_count")
    is_central = memory["centrality"] > policy.threshold("central_above_centrality")
    return float(days * (growth if is_frequent else 1) * (growth if is_central else 1))


class _Worked:
    """How long a scope had been worked on at an instant, in microseconds."""

    def __init__(self, clock: pa.Table) -> None:
        self._at: Sequence[datetime] = values(clock, "active_at")
        self._worked: Sequence[int] = values(clock, "worked_us")
        self._runs: Sequence[int] = values(clock, "runs_us")

    def __call__(self, at: datetime) -> float:
        row = bisect_right(self._at, at) - 1
        if row < 0:
            return 0
        since = (at - self._at[row]) / timedelta(microseconds=1)
        return self._worked[row] + min(since, self._runs[row])
