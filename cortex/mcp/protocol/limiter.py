"""The rate limit: at most so many calls within any minute, counted exactly though they come at once."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

from cortex.transforms.errors import RateLimited

WINDOW_SECONDS = 60.0


@dataclass
class SlidingWindow:
    """The instants of the calls that were admitted within the last WINDOW_SECONDS; `clock` is in seconds."""

    clock: Callable[[], float] = monotonic
    _admitted_at: deque[float] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def admit(self, limit: int) -> None:
        """Count a call. Raises RateLimited, and does not count it, if `limit` were admitted already."""
        with self._lock:
            now = self.clock()
            while self._admitted_at and now - self._admitted_at[0] >= WINDOW_SECONDS:
                self._admitted_at.popleft()
            if len(self._admitted_at) >= limit:
                wait_s = WINDOW_SECONDS - (now - self._admitted_at[-limit])
                raise RateLimited(
                    f"{limit} calls within a minute are allowed, and all are used.",
                    f"Wait {wait_s:.0f} seconds, or raise mcp.calls_per_minute.",
                )
            self._admitted_at.append(now)

    @property
    def is_idle(self) -> bool:
        """Return whether no call was admitted within the last WINDOW_SECONDS."""
        with self._lock:
            return not self._admitted_at or self.clock() - self._admitted_at[-1] >= WINDOW_SECONDS
