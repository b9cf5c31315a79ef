"""Writing files so that a kill leaves the old or the new one, never half of one; and the lock of a folder."""

import contextlib
import errno
import glob
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from cortex.hooks.ticket import TEMP, sync_file
from cortex.transforms.errors import CortexError, StoreBusy, StoreNotWritable

# Below the home: where all that goes into the store is written, also by hooks, before it is moved to its
# place. A run empties it, whatever a library has put next to a file of ours.
TEMPORARY = Path("staging") / TEMP

# Ends the name of what is written next to its place, outside the store.
PART_SUFFIX = ".part"

# Whose writer is unknown to live is dead after this long: a hook is killed by the client after 5 s, and all
# that takes longer is written under the lease.
TEMPORARY_DEAD_AFTER_SECONDS = 60
# Longer than asking whether a lock is free holds it, shorter than anybody notices.
PROBE_SECONDS = 0.25

_NOT_WRITABLE = {
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    # What a drive elsewhere answers with; the same command goes on once it is back.
    *(errno.EIO, errno.EBUSY, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN),
    # A file system without locks, hard links or renames: exFAT, many mounts of a bucket or a phone.
    *(errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV),
}

# SQLite, DuckDB and LanceDB have words of their own for them.
_WORDS = {
    "database or disk is full": errno.ENOSPC,
    "attempt to write a readonly database": errno.EROFS,
    "disk I/O error": errno.EIO,
    "fsync failed": errno.EIO,
    "unable to open database file": errno.EACCES,
    "does not support an operation required": errno.ENOTSUP,
}


# These are refused to links, locks and renames alone; and EPERM to a link, which names two paths.
_WITHOUT_LINKS_OR_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}
_ELSEWHERE = {errno.EIO, errno.EBUSY, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN}
_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextlib.contextmanager
def writing_to(home: Path, *, also_others: bool = False) -> Iterator[None]:
    """
    Turn the system's refusals to write below `home` into StoreNotWritable with a next step.

    In a block that does `also_others` things, such as ask a model, only a full disk and errors that name a
    path below `home` count.
    """
    try:
        yield
    except CortexError:
        raise
    except Exception as error:  # DuckDB's and LanceDB's errors share no base class
        refusal = refusal_of(error, home)
        is_other = also_others and _number_of(error) not in _FULL and not _is_below(error, home)
        if refusal is None or is_other:
            raise
        raise refusal from error


def refusal_of(error: Exception, home: Path) -> StoreNotWritable | None:
    """Return the clear error for a refused write, or None when `error` is about something else."""
    number = _number_of(error)
    if number in _FULL:
        return StoreNotWritable(
            f"no space is left on the disk of {home}; nothing was lost, and finished work is kept.",
            "Free some space and run the same command again.",
        )
    if number not in _NOT_WRITABLE:
        return None
    is_link = number == errno.EPERM and getattr(error, "filename2", None) is not None
    next_step = "Make it writable, or set CORTEX_HOME to a writable folder."
    if is_link or number in _WITHOUT_LINKS_OR_LOCKS:
        next_step = "Set CORTEX_HOME to a folder on a disk with hard links and locks."
    elif number in _ELSEWHERE:
        next_step = "Run the same command again once the disk answers."
    return StoreNotWritable(
        f"the store at {home} cannot be written ({os.strerror(number).lower()}).", next_step
    )


def _is_below(error: Exception, home: Path) -> bool:
    """Return whether an error names a path of the store; libraries name it in their words."""
    names = (str(error), *(str(getattr(error, name, "")) for name in ("filename", "filename2")))
    return any(f"{home}{os.sep}" in f"{name}{os.sep}" for name in names)


def _number_of(error: Exception) -> int:
    """Return the number of the system's error, 0 for another; C++ and Rust libraries tell it in words."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    message = str(error)
    words = {**{os.strerror(number): number for number in _NOT_WRITABLE}, **_WORDS}
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
    '/t/token=[REDACTED:github-token]'
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
        sync(part)
        _move(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


def _move(part: Path, path: Path) -> None:
    try:
        part.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # A folder of the store may be a link to another disk.
        with replacing(path) as neighbour:
            shutil.copyfile(part, neighbour)
        part.unlink()


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path`, which is outside the store; readers see the old or the new file."""
    with replacing(path) as part:
        part.write_bytes(content)


def make_home(home: Path) -> None:
    """Make the store's folder unless there is one, for its user alone: what is below may be read by more."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)


@contextlib.contextmanager
def replacing_stored(home: Path, path: Path) -> Iterator[Path]:
    """
    Yield a path among the store's temporaries: what is written there replaces `path`, which is in the store.

    Missing folders are made. Raises StoreNotWritable.
    """
    with writing_to(home):
        make_home(home)
        (home / TEMPORARY).mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = home / TEMPORARY / f"{os.urandom(8).hex()}.{os.getpid()}.tmp"
        try:
            with replacing(path, part):
                yield part
        except BaseException:
            for left in part.parent.glob(f"{part.name}*"):  # what a library put next to it
                _remove(left)
            raise


def write_stored(home: Path, path: Path, content: bytes) -> None:
    """Write `content` to `path`, which is in the store, as `replacing_stored` does."""
    with replacing_stored(home, path) as part:
        part.write_bytes(content)


def write_where_named(path: Path, content: bytes) -> None:
    """
    Write `content` where a person named a place, in folders as needed: a link stays, a device is written to.

    Only a regular file is replaced in one step. Raises IsADirectoryError and the like as `open` does.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
    else:
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
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


def sync(path: Path) -> None:
    """Make a file's bytes, or the renames in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder; 0 if there is none."""
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # a run may remove it meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def remove_temporaries(home: Path) -> int:
    """Remove what killed writers left in the store; return how many files and folders. Under the lease."""
    removed = 0
    for path in (*_listed(home / TEMPORARY), *_former_temporaries(home)):
        if _is_abandoned(path):
            _remove(path)
            removed += 1
    return removed


# As earlier versions wrote next to a file's place. Others call their files .part too, but do not hide them.
_FORMER_PART = re.compile(r"\..+\.part(?:\.wal)?")


def _former_temporaries(home: Path) -> Iterator[Path]:
    for folder in (home, home / "tables", *_listed(home / "staging")):
        yield from (path for path in _listed(folder) if _FORMER_PART.fullmatch(path.name))
    for folder in (home / "lake", home / "runs", home / "published"):
        yield from (path for path in folder.rglob(".*.part*") if _FORMER_PART.fullmatch(path.name))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_abandoned(path: Path) -> bool:
    writer = writer_of(path)
    if writer is None or not is_process(writer):
        return True
    return time.time() - modified_at(path) > TEMPORARY_DEAD_AFTER_SECONDS


def remove_abandoned_parts(path: Path) -> None:
    """Remove what killed writers of `path` left next to it, in a folder that no run looks through."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*{PART_SUFFIX}"):
        writer = writer_of(part)
        if writer is not None and not is_process(writer):
            part.unlink(missing_ok=True)


def writer_of(part: Path) -> int | None:
    """
    Return the number of the process in the name of a file that is being written, None without one.

    >>> writer_of(Path(".x.123.part")), writer_of(Path("x.123.tmp.wal")), writer_of(Path(".x.part"))
    (123, 123, None)
    """
    number = re.search(r"\.(\d+)\.(?:part|tmp)(?:\.\w+)?$", part.name)
    return int(number[1]) if number else None


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


@contextlib.contextmanager
def own_lock(home: Path, wait_s: float = PROBE_SECONDS) -> Iterator[None]:
    """
    Hold the folder's own lock while the block runs.

    An OS file lock on `<home>/runs/lease.lock`: a killed holder loses it at once, the file itself stays and
    means nothing. Raises StoreBusy when another process still holds it after `wait_s` seconds: whoever asks
    whether it is free holds it for a moment, which is no other run.
    """
    from filelock import FileLock, Timeout

    runs = home / "runs"
    with writing_to(home):
        make_home(home)
        runs.mkdir(exist_ok=True)
        lock = FileLock(runs / "lease.lock", timeout=wait_s, poll_interval=PROBE_SECONDS / 10)
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
