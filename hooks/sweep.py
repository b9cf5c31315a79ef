"""The sweep at a session's start: tickets for transcripts that grew unseen, and tickets no longer needed.

A session that was interrupted or killed leaves no event. Per folder of transcripts one small
file in `staging/seen/` says up to when it was swept; what was modified since gets a ticket,
unless one waits that knows its present size. One ticket too many costs nothing: a run's cursor finds no
new line. What grew before the first sweep is old material, which only a backfill takes in.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import private, ticket
else:
    import private
    import ticket

# Bounds of one sweep; what is left over is taken by the next, oldest first. The start of a
# session waits for the sweep, so it gets less than half of the 100 ms that a start may cost.
_MAX_TICKETS = 50
_MAX_SECONDS = 0.04
MAX_REMOVED = 500

# Clocks of file systems lag behind time.time() by up to 2 s (FAT); less than that never counts as seen.
CLOCK_LAG_NS = 2_000_000_000


def sweep(staging: str, transcript: str, now_ns: int) -> int:
    """Ticket what grew in the folder of `transcript` since the last sweep; return the number of tickets."""
    give_up_at = time.monotonic() + _MAX_SECONDS
    folder = os.path.dirname(transcript)
    mark = os.path.join(staging, ticket.SEEN, f"{ticket.path_hash(folder):016x}")
    since_ns = _read_mark(mark)
    seen_ns, count = now_ns - CLOCK_LAG_NS, 0
    if since_ns is not None:
        waiting = thin(os.path.join(staging, ticket.NEW))
        for modified_ns, path, inode in sorted(_grown(folder, since_ns)):
            if private.is_private(staging, path):
                continue
            if _knows_size(waiting.get(ticket.key_for(path, inode)), path):
                continue
            if count == _MAX_TICKETS or time.monotonic() > give_up_at:
                seen_ns = modified_ns
                break
            try:
                ticket.drop(staging, "sweep", path, durable=False)
            except (FileNotFoundError, PermissionError, ticket.NotATranscript):
                continue  # deleted since it was listed, not ours to read, or never one
            count += 1
    ticket.write_whole(staging, mark, b"%d" % seen_ns, durable=False)
    return count


def thin(new: str) -> dict[str, str]:
    """
    Remove tickets in folder `new` that a later ticket of the same transcript makes needless.

    Returns the path of the newest ticket by transcript key. Without an engine that reads them,
    tickets would otherwise pile up with every turn.
    """
    newest: dict[str, str] = {}
    removed = 0
    for name in sorted(_names(new), reverse=True):
        path = os.path.join(new, name)
        is_newest = newest.setdefault(ticket.key_in_name(name), path) == path
        if not is_newest and removed < MAX_REMOVED:
            removed += 1
            _remove(path)
    return newest


def _knows_size(ticket_path: str | None, transcript: str) -> bool:
    # By size, not by time: the clock of a file system may lag behind that of the ticket.
    try:
        with open(ticket_path or "", "rb") as file:
            return ticket.parse(file.read(ticket.MAX_TICKET_BYTES)).get("size") == os.path.getsize(transcript)
    except (OSError, ValueError):
        return False


def _remove(path: str) -> None:
    # Importing contextlib would cost 1 ms.
    try:  # noqa: SIM105
        os.unlink(path)
    except FileNotFoundError:
        pass  # a run claimed it just now


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except FileNotFoundError:
        return []


def _read_mark(mark: str) -> int | None:
    try:
        with open(mark, "rb") as file:
            return int(file.read(32))
    except (FileNotFoundError, ValueError):
        return None


def _grown(folder: str, since_ns: int) -> list[tuple[int, str, int]]:
    # (modified, path, inode) of the folder's transcripts, and of the subagents of those.
    grown = []
    for modified_ns, path, inode in _transcripts(folder, since_ns):
        grown.append((modified_ns, path, inode))
        grown += _transcripts(os.path.join(os.path.splitext(path)[0], "subagents"), since_ns)
    return grown


def _transcripts(folder: str, since_ns: int) -> list[tuple[int, str, int]]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    transcripts = []
    for entry in entries:
        if entry.name.endswith(".jsonl") and entry.is_file():
            status = entry.stat()
            if status.st_mtime_ns >= since_ns:
                transcripts.append((status.st_mtime_ns, entry.path, status.st_ino))
    return transcripts
