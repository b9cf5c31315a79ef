"""Whether taking in works, as names and times of files tell it; instants are stamps as in tickets' names."""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from types import ModuleType

    from cortex.hooks import ticket
else:
    import ticket

# A night, a disk that is full for an hour, a run of an hour: none of these is worth a word.
PATIENCE_SECONDS = 24 * 3600
# A run takes its tickets in its first seconds. One that was an hour old when a session began, which starts
# a run, and still waits at the start after that was not taken in.
OVERDUE_SECONDS = 3600
# One failure may be anything; the second comes ten minutes later at the earliest.
FAILURES = 2

# What was set aside longer ago was told, or is not missed.
RECENT_SECONDS = 3 * 24 * 3600

# Written by each run to whose requests a language model gave no answer, removed by one that got some.
WRITER_NOTE = "runs/writer.json"

# Written by each render: memories by project id, those for all projects under GLOBAL.
COUNTS = "published/counts.json"
_GLOBAL = "global"


def warning(home: str, now_seconds: float) -> str:
    """
    Return one line for person and model on what is wrong and stays so without them; empty if all is well.

    Nothing was taken in for a day though sessions went on; transcripts were set aside; the language model has
    answered nothing for a day. To be asked before the sweep, whose mark says when the session before began.
    """
    return _stuck(home, now_seconds) or _unreadable(home, now_seconds) or _unanswered(home, now_seconds)


def _stuck(home: str, now_seconds: float) -> str:
    since = stuck_since(home)
    if not since or since > _stamp(now_seconds - PATIENCE_SECONDS):
        return ""
    day = _plain().day_of(f"{since[:4]}-{since[4:6]}-{since[6:8]}T")
    if had_engine(home) and not has_engine(home):
        return f"Cortex has taken in no session since {day}: its `cortex` command is gone. Install it again."
    if had_engine(home) and _background().read_mark(home).get("exit_code") == _background().EXIT_LOSS:
        return f"Cortex has published nothing new since {day}, so as to hide nothing: run `cortex status`."
    return f"Cortex has taken in no session since {day}: run `cortex doctor`."


def _unreadable(home: str, now_seconds: float) -> str:
    """Return a line on transcripts that were set aside of late."""
    folder = os.path.join(home, "staging", ticket.QUARANTINED)
    try:
        reasons = [name for name in os.listdir(folder) if name.endswith(".reason")]
    except OSError:
        return ""
    since = now_seconds - RECENT_SECONDS
    count = sum((_modified(os.path.join(folder, name)) or 0.0) > since for name in reasons)
    counted = "a transcript" if count == 1 else f"{count} transcripts"
    return f"Cortex could not read {counted}: `cortex doctor` says why." if count else ""


def _unanswered(home: str, now_seconds: float) -> str:
    """Return a line on a language model to whose requests no answer has come for a day, up to now."""
    path = os.path.join(home, WRITER_NOTE)
    noted_at = _modified(path)
    if noted_at is None or noted_at < now_seconds - RECENT_SECONDS:
        return ""
    try:
        with open(path, "rb") as file:
            since = json.loads(file.read())["failed_at"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    until = time.gmtime(now_seconds - PATIENCE_SECONDS)
    if not isinstance(since, str) or since > time.strftime("%Y-%m-%dT%H:%M:%S", until):
        return ""
    day = _plain().day_of(since) or "yesterday"
    return f"The language model has read no session for Cortex since {day}: `cortex status` says why."


def stuck_since(home: str) -> str:
    """Return the stamp since when something keeps sessions from being taken in, empty if nothing does."""
    signs = []
    last_start = _modified(os.path.join(home, "staging", ticket.SEEN))
    if last_start is not None:
        # Without an engine tickets wait, as they should.
        waiting = oldest_ticket(home) if had_engine(home) else ""
        if waiting and waiting < _stamp(last_start - OVERDUE_SECONDS):
            signs.append(waiting)
        # Hooks that cannot write say so in their log, and leave no mark of a start.
        complained = _modified(os.path.join(home, "runs", "hooks.log"))
        if complained is not None and complained - last_start > PATIENCE_SECONDS:
            signs.append(_stamp(last_start))
    if had_engine(home):
        failures, since = _background().failing(_background().read_mark(home), is_over=False)
        if failures >= FAILURES:
            signs.append(_stamp(since))
    return min(signs, default="")


def oldest_ticket(home: str) -> str:
    """Return when the oldest ticket that waits was written, empty if none does."""
    names: list[str] = []
    for folder in (ticket.NEW, ticket.CLAIMED):
        try:
            names += [n for n in os.listdir(os.path.join(home, "staging", folder)) if n.endswith(".json")]
        except OSError:
            continue
    stamp = min(names, default="").partition("-")[0]
    is_day = len(stamp) >= 8 and stamp[:8].isdecimal()
    return stamp if is_day and 1 <= int(stamp[4:6]) <= 12 else ""


def held(home: str, project_id: str) -> str:
    """Return one line that says how many memories there are, empty if nobody counted."""
    try:
        with open(os.path.join(home, COUNTS), "rb") as file:
            counts = json.loads(file.read())
    except (OSError, ValueError):
        return ""
    here, for_all = (counts.get(name) if isinstance(counts, dict) else None for name in (project_id, _GLOBAL))
    if not isinstance(here, int) or here <= 0:
        return ""
    also = f" and {for_all} for all projects" if isinstance(for_all, int) and for_all > 0 else ""
    counted = "1 memory" if here == 1 else f"{here} memories"
    return f"Cortex holds {counted} of this project{also}; `cortex recall` searches them."


def _plain() -> ModuleType:
    if TYPE_CHECKING or __package__:
        from cortex.hooks.prose import plain
    else:  # only for a warning: its patterns take a millisecond
        from prose import plain
    return plain


def _background() -> ModuleType:
    if TYPE_CHECKING or __package__:
        from cortex.hooks import background
    else:  # only if an engine was installed: the start of its run needs it too
        import background
    return background


def has_engine(home: str) -> bool:
    """Return whether the engine that was noted for the hooks can be started."""
    return had_engine(home) and _background().engine_at(home) is not None


def had_engine(home: str) -> bool:
    """Return whether an engine was ever noted for the hooks."""
    return os.path.exists(os.path.join(home, "engine"))


def _modified(path: str) -> float | None:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _stamp(seconds: float) -> str:
    return ticket.stamp(int(max(seconds, 0) * 1_000_000_000))
