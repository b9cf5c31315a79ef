"""
Writing files so that a kill leaves the old file or the new one, never half of one; and the lock of a
folder.
"""

import contextlib
import errno
import glob
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from cortex.transforms.errors import StoreBusy, StoreNotWritable

# Ends the name of every file that is being written; a run removes what a killed run left.
PART_SUFFIX = ".part"

_NOT_WRITABLE = {
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
}

# SQLite has words of its own for them.
_SQLITE = {"database or disk is full": errno.ENOSPC, "attempt to write a readonly database": errno.EROFS}


@contextlib.contextmanager
def writing_to(home: Path) -> Iterator[None]:
    """Turn the system's refusals to write below `home` into StoreNotWritable with a next step."""
    try:
        yield
    except Exception as error:  # DuckDB's and LanceDB's errors share no base class
        refusal = refusal_of(error, home)
        if refusal is None:
            raise
        raise refusal from error


def refusal_of(error: Exception, home: Path) -> StoreNotWritable | None:
    """Return the clear error for a refused write, or None when `error` is about something else."""
    number = _number_of(error)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return StoreNotWritable(
            f"no space is left on the disk of {home}; nothing was lost, and finished work is kept.",
            "Free some space and run the same command again.",
        )
    if number in _NOT_WRITABLE:
        return StoreNotWritable(
            f"the store at {home} cannot be written ({os.strerror(number).lower()}).",
            "Make it writable, or set CORTEX_HOME to a writable folder.",
        )
    return None


def _number_of(error: Exception) -> int:
    """Return the number of the system's error, 0 for another; C++ and Rust libraries tell it in words."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    message = str(error)
    words = {**{os.strerror(number): number for number in _NOT_WRITABLE}, **_SQLITE}
    return next((number for words_of_error, number in words.items() if words_of_error in message), 0)


def path_text(path: Path | str) -> str:
    """
    Return a path as text that any file and table can hold: bytes that are not UTF-8 are spelt out.

    >>> path_text("/t/caf\\udce9.jsonl")
    '/t/caf\\\\xe9.jsonl'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@lru_cache(maxsize=4_096)  # a run asks of each transcript several times
def stored_name(path: Path | str) -> str:
    """
    Return a path, or an id, as the store may keep it: as text, without the secrets that it holds.

    >>> stored_name("/t/token=ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R/s1.jsonl")
    '/t/token=[REDACTED:github-token]/s1.jsonl'
    """
    # Imported here: a question keeps no path, and needs none of the rules.
    from cortex.transforms.redaction.redact import redact

    return redact(path_text(path))[0]


@contextlib.contextmanager
def replacing(path: Path, part: Path | None = None) -> Iterator[Path]:
    """
    Yield a path next to `path`: what is written there replaces it, durably and in one step.

    `part` is that path if it is not the usual one. On an error the old file stays and the new one goes.
    """
    part = part or path.with_name(f".{path.name}.{os.getpid()}{PART_SUFFIX}")
    try:
        yield part
        _sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path`; readers see the old or the new file."""
    with replacing(path) as part:
        part.write_bytes(content)


def write_where_named(path: Path, content: bytes) -> None:
    """
    Write `content` where a person named a place: a link stays one, a device or pipe is written to.

    Only a regular file is replaced in one step. Raises IsADirectoryError and the like as `open` does.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
    else:
        remove_abandoned_parts(path.resolve())
        write_atomically(path.resolve(), content)


def discard(stream: TextIO) -> None:
    """Let what a stream is given from now on go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_empty_folder(folder: Path) -> bool:
    """Return whether `folder` holds nothing; a file holds something, what is not there nothing."""
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def write_below(folder: Path, name: str, content: bytes) -> None:
    """
    Write `content` to the file `name` below `folder`; missing folders are made, for the user alone.

    Raises OSError if that is refused.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, content)


def sync_folder(folder: Path) -> None:
    """Make the renames in `folder` survive a power cut."""
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder; 0 if there is none."""
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # a run may remove it meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def remove_parts(root: Path) -> int:
    """Remove what killed writers left below `root`; return how many files. Only under the lease."""
    removed = 0
    for part in root.rglob(f".*{PART_SUFFIX}"):  # others call their files .part too, but do not hide them
        part.unlink(missing_ok=True)
        removed += 1
    return removed


def remove_abandoned_parts(path: Path) -> None:
    """Remove what killed writers of `path` left next to it, in a folder that no run looks through."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*{PART_SUFFIX}"):
        writer = writer_of(part)
        if writer is not None and not is_process(writer):
            part.unlink(missing_ok=True)


def writer_of(part: Path) -> int | None:
    """Return the number of the process in a name like `.x.123.part`, None in a name that no writer gives."""
    number = part.name.split(".")[-2]
    return int(number) if number.isdecimal() else None


def is_process(pid: int) -> bool:
    """Return whether a process of this machine has this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def modified_at(path: Path) -> float:
    """Return when a file was last changed, in seconds since 1970; 0 if it is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


# -- The folder's own lock: the operating system frees it when its holder dies.


@contextlib.contextmanager
def own_lock(home: Path) -> Iterator[None]:
    """
    Hold the folder's own lock while the block runs.

    An OS file lock on `<home>/runs/lease.lock`: a killed holder loses it at once, the file itself stays and
    means nothing. Raises StoreBusy without waiting when another process holds it.
    """
    from filelock import FileLock, Timeout

    runs = home / "runs"
    with writing_to(home):
        runs.mkdir(parents=True, exist_ok=True)
        lock = FileLock(runs / "lease.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise StoreBusy(
                "another run is writing to this store.",
                "`cortex status` shows how far it is; try again when it is done.",
            ) from error
    try:
        yield
    finally:
        lock.release()
