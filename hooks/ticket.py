"""The ticket: a small file in staging that says which transcript has grown, and the hard link that keeps it.

A ticket is written first, the link second. Killed in between, the ticket still names the
original; and a link that no ticket names is always one whose transcript was read already.
Standard library only, Python 3.9: this file also runs inside the assistant.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

TICKET_VERSION = 1

# Events of hooks that show something, and leave no ticket.
SESSION_START, USER_PROMPT = "session-start", "user-prompt-submit"

# Folders of staging.
NEW, CLAIMED, QUARANTINED, TRANSCRIPTS = "new", "claimed", "set_aside", "transcripts"
TEMP, SEEN = "tmp", "seen"

# Where linking is impossible a hook copies at most this much of what is new, and the next
# event goes on from there: 8 MiB take about 10 ms, a whole long session could take seconds.
COPY_LIMIT_BYTES = 8 * 1024 * 1024
COPY_CHUNK_BYTES = 1024 * 1024

# A run may remove its link between a hook's two looks at it; the next attempt then finds the place free.
LINK_ATTEMPTS = 3

# A file of which more than this was never written is not a transcript; reading 1 TB of nothing takes minutes.
# Less is what a power cut may leave in a real one.
MAX_HOLE_BYTES = 64 * 1024 * 1024

# Linux takes no longer path. To walk up a longer one takes a time that grows with the square of its length.
MAX_PATH_BYTES = 4_095

# Longest ticket that is accepted; a real one has about 500 bytes.
MAX_TICKET_BYTES = 64 * 1024


class NotATranscript(OSError):
    """What a path names is not a regular file of this user: a pipe, a device, a folder, another's file."""


def open_regular(path: str) -> int:
    """
    Return a descriptor to read the transcript at `path`; opening never waits and has no effect of its own.

    A symbolic link is followed, since people keep the client's folder elsewhere. What it leads to must be a
    regular file of this user or of root. Raises NotATranscript, and OSError if it cannot be opened.
    """
    _check_regular(os.stat(path), path)  # before: opening a tape rewinds it
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        _check_regular(status, path)
        if status.st_size - 512 * status.st_blocks > MAX_HOLE_BYTES and _has_hole(descriptor, status.st_size):
            raise NotATranscript(errno.EINVAL, "a file of holes", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotATranscript(errno.EINVAL, "not a regular file", path)
    if status.st_uid not in (os.geteuid(), 0):
        raise NotATranscript(errno.EINVAL, "a file of another user", path)


def _has_hole(descriptor: int, size: int) -> bool:
    # A file system that compresses also has fewer blocks than bytes, but no hole.
    try:
        return os.lseek(descriptor, 0, os.SEEK_HOLE) < size
    except (OSError, AttributeError):
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def path_hash(path: str) -> int:
    """Return the 64-bit FNV-1a hash of a path: stable, and without the 3 ms that importing hashlib costs."""
    number = 0xCBF29CE484222325
    for byte in os.fsencode(path):
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return number


def key_for(transcript: str, inode: int) -> str:
    """Return the name a transcript is kept under: the same while it grows, another once it is replaced."""
    return f"{path_hash(transcript):016x}_{inode:x}"


def key_in_name(name: str) -> str:
    """Return the transcript's key in a ticket's file name."""
    return name[: -len(".json")].rpartition("-")[2]


def stamp(at_ns: int) -> str:
    """
    Return a UTC instant, in nanoseconds since 1970, as it stands in file names.

    >>> stamp(1_790_000_000_123_456_789)
    '20260921T141320123456Z'
    """
    seconds, rest_ns = divmod(at_ns, 1_000_000_000)
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + f"{rest_ns // 1000:06d}Z"


def link_path(staging: str, key: str) -> str:
    """Return where the transcript with this key is kept."""
    return os.path.join(staging, TRANSCRIPTS, key + ".jsonl")


def owner_in_path(transcript: str) -> tuple[str, str | None]:
    """
    Return the (session id, agent id) that a transcript's path tells; a main session has no agent id.

    >>> owner_in_path("/p/4f0c.jsonl")
    ('4f0c', None)
    >>> owner_in_path("/p/4f0c/subagents/agent-a1.jsonl")
    ('4f0c', 'a1')
    """
    stem = os.path.splitext(os.path.basename(transcript))[0]
    if not stem.startswith("agent-"):
        return stem, None
    before, separator, _ = transcript.rpartition("/subagents/")
    return (os.path.basename(before) if separator else ""), stem[len("agent-") :]


def drop(
    staging: str,
    event: str,
    transcript: str,
    *,
    session_id: str | None = None,
    agent_id: str | None = None,
    cwd: str | None = None,
    durable: bool = True,
    copy_limit_bytes: int | None = COPY_LIMIT_BYTES,
) -> str:
    """
    Write a ticket for `transcript`, an absolute path, and keep the transcript; return the ticket's path.

    `durable` waits for the disk. Raises FileNotFoundError if there is no such transcript, NotATranscript
    if it is none, OSError if staging cannot be written; the ticket stands even when keeping failed.
    """
    descriptor = open_regular(transcript)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    key = key_for(transcript, status.st_ino)
    path_session, path_agent = owner_in_path(transcript)
    session_id = session_id or path_session
    at = stamp(time.time_ns())
    fields = {
        "version": TICKET_VERSION,
        "event": event,
        "session_id": session_id,
        "agent_id": agent_id or path_agent,
        "transcript_path": transcript,
        "cwd": cwd,
        "at": at,
        "size": status.st_size,
    }
    path = os.path.join(staging, NEW, f"{at}-{event}-{_plain(session_id)}-{key}.json")
    write_whole(staging, path, json.dumps(fields).encode(), durable=durable)
    keep(staging, transcript, key, copy_limit_bytes=copy_limit_bytes)
    return path


def parse(raw: bytes) -> dict[str, object]:
    """Return the fields of a ticket; raises ValueError with the reason if it is not one."""
    if len(raw) > MAX_TICKET_BYTES:
        raise ValueError("larger than a ticket can be")
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(fields, dict) or fields.get("version") != TICKET_VERSION:
        raise ValueError(f"not a ticket of version {TICKET_VERSION}")
    for name in ("session_id", "agent_id", "cwd"):
        if not (fields.get(name) is None or _is_text(fields[name])):
            raise ValueError(f"'{name}' is not text")
    path = fields.get("transcript_path")
    if not _is_text(path) or not os.path.isabs(str(path)):
        raise ValueError("'transcript_path' is not an absolute path")
    return fields


def _is_text(value: object) -> bool:
    """Return whether `value` is text that a path can hold: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def write_whole(staging: str, target: str, content: bytes, *, durable: bool) -> None:
    """Write `content` to `target` so that it is there whole or not at all, also after a kill."""
    # The writer's process id is in the name, so that a later run can recognise a dead writer's file.
    temp = os.path.join(staging, TEMP, f"{os.path.basename(target)}.{os.getpid()}.tmp")
    try:
        descriptor = _open_temp(temp)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(temp), mode=0o700, exist_ok=True)
        descriptor = _open_temp(temp)
    try:
        try:
            write_all(descriptor, content)
            if durable:
                sync_file(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.rename(temp, target)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            os.rename(temp, target)
    except BaseException:
        os.unlink(temp)
        raise


def sync_file(descriptor: int) -> None:
    """Wait until the disk has a file or folder; a file system that cannot be asked to is not waited for."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of `content`; one write may take only a part of it."""
    while content:
        content = content[os.write(descriptor, content) :]


def keep(staging: str, transcript: str, key: str, *, copy_limit_bytes: int | None) -> None:
    """
    Keep a transcript in staging by hard link, or by copying what is new where linking is impossible.

    Raises NotATranscript, OSError.
    """
    target = link_path(staging, key)
    source = os.path.realpath(transcript)  # a link to a symbolic link would keep nothing
    reader = open_regular(source)
    with os.fdopen(reader, "rb") as file:
        status = os.fstat(reader)
        for _ in range(LINK_ATTEMPTS):
            try:
                os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
                os.link(source, target)
                if os.lstat(target).st_ino != status.st_ino:  # replaced meanwhile: the next ticket asks
                    os.unlink(target)
            except FileExistsError:
                try:
                    kept = os.lstat(target)
                except FileNotFoundError:  # a run let go of its link between the two calls
                    continue
                if kept.st_ino != status.st_ino:
                    _copy_rest(file, target, copy_limit_bytes, _excluded_folders(staging))
            except OSError:
                _copy_rest(file, target, copy_limit_bytes, _excluded_folders(staging))
            return


def _excluded_folders(staging: str) -> tuple[str, ...]:
    if TYPE_CHECKING or __package__:
        from cortex.hooks import basic_brief
    else:  # only where a copy is made
        import basic_brief
    return basic_brief.excluded_folders(os.path.dirname(staging))


def _is_excluded(lines: bytes, folders: tuple[str, ...]) -> bool:
    """Return whether a record among `lines` was said in one of `folders`, which are never stored."""
    import re  # only where folders are excluded

    if TYPE_CHECKING or __package__:
        from cortex.hooks import private
    else:
        import private
    named = {match[1] for match in re.finditer(rb'"cwd"\s*:\s*("(?:[^"\\\n]|\\.)*")', lines)}
    for name in named:
        try:
            if private.is_below(str(json.loads(name)), folders):
                return True
        except ValueError:
            continue  # no text in JSON
    return False


def _copy_rest(reader: BinaryIO, target: str, limit_bytes: int | None, excluded: tuple[str, ...]) -> None:
    # Transcripts only grow, so a shorter copy is a true beginning; and two hooks at once write
    # the same bytes to the same places. It ends before the first piece with a record of an excluded folder.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        at = os.fstat(descriptor).st_size
        end = os.fstat(reader.fileno()).st_size
        if limit_bytes is not None:
            end = min(end, at + limit_bytes)
        reader.seek(at)
        while at < end and (chunk := reader.read(min(COPY_CHUNK_BYTES, end - at))):
            if excluded:
                chunk = chunk[: chunk.rfind(b"\n") + 1] or chunk  # whole records, if one ends here
                if _is_excluded(chunk, excluded):
                    break
            at += os.pwrite(descriptor, chunk, at)
            reader.seek(at)
    finally:
        os.close(descriptor)


def _open_temp(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


def _plain(session_id: str) -> str:
    # File names hold only what every file system takes; a session id is a UUID of 36 characters.
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in session_id)[:64] or "_"
