"""Objects under names: in a folder that several machines share, or in a bucket behind the protocol of S3."""

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

from cortex.storage.filesystem.files import PART_SUFFIX, sync
from cortex.storage.filesystem.place import check_uri, install_extra
from cortex.storage.remote.commit_log import is_removable
from cortex.transforms.errors import FileDamaged, StoreUnreachable, UsageError

_Item = TypeVar("_Item")

# How long a request, and all attempts of it, may take.
REQUEST_SECONDS, RETRY_SECONDS = 60, 30

# Transfers at once; each waits for the network most of the time.
TRANSFERS = 8

CHUNK_BYTES = 4 * 1024 * 1024

# What is read into memory at once: a snapshot of 32 MB takes 43 MB as an envelope, a tree of 100,000 files
# 20 MB. Whoever may write there may put anything under any name.
MAX_OBJECT_BYTES = 64 * 1024 * 1024

# Also of what is not an entry yet.
_LOG_NAME = re.compile(r"log/\.?(\d{10,})\.json")


class Bucket(Protocol):
    """Named objects; every method raises StoreUnreachable if nothing answers."""

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one of that name; return whether this call did."""

    def read(self, name: str) -> bytes | None:
        """
        Return an object's content; None if there is none.

        Raises FileDamaged, before any of it is read, for more than MAX_OBJECT_BYTES or for no regular file.
        """

    def put(self, name: str, content: bytes | Path) -> None:
        """Write an object from bytes or from a file, over any before it."""

    def fetch(self, name: str, path: Path, most_bytes: int) -> bool:
        """
        Write an object's content to a file; return whether there is such an object.

        Raises FileDamaged for an object of more than `most_bytes`. Where the file cannot be written the
        system's own OSError is raised.
        """

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names of the objects whose name begins with `prefix`: empty, or ending with a slash."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no error."""


class BucketLog:
    """The commit log as objects `log/<number>.json`, each created once."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def read(self, number: int) -> bytes | None:
        """Return entry `number`; None if there is none yet."""
        return self._bucket.read(_log_name(number))

    def try_commit(self, number: int, content: bytes) -> bool:
        """Write entry `number` unless there is one; return whether this call did."""
        return self._bucket.create(_log_name(number), content)

    def trim(self, last: int) -> None:
        """Remove old entries, and what a killed writer left next to them; `last` is one that there is."""
        names = list(self._bucket.names("log/"))
        entries = ((name, _LOG_NAME.match(name)) for name in names)
        self._bucket.remove(name for name, match in entries if match and is_removable(int(match[1]), last))


def _log_name(number: int) -> str:
    return f"log/{number:010}.json"


class FolderBucket:
    """Objects as files below one folder, also on a drive that machines share; a link creates each once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one; return whether this call did."""
        with self._reaching(), self._written(name) as part:
            part.write_bytes(content)
            sync(part)
            try:
                os.link(part, self._root / name)
            except FileExistsError:
                return False
            sync((self._root / name).parent)
            return True

    def read(self, name: str) -> bytes | None:
        """Return an object's content; None if there is none."""
        with self._reaching():
            source = self._opened(name, MAX_OBJECT_BYTES)
            if source is None:
                return None
            with source:
                return source.read(MAX_OBJECT_BYTES)

    def put(self, name: str, content: bytes | Path) -> None:
        """Write an object from bytes or from a file."""
        with self._reaching(), self._written(name) as part:
            if isinstance(content, Path):
                shutil.copyfile(content, part)
            else:
                part.write_bytes(content)
            sync(part)
            part.replace(self._root / name)
            sync((self._root / name).parent)

    def fetch(self, name: str, path: Path, most_bytes: int) -> bool:
        """Write an object's content to a file; return whether there is such an object."""
        with self._reaching():
            source = self._opened(name, most_bytes)
            if source is None:
                return False
        with source:
            _write(path, self._chunks(source))
        return True

    def _opened(self, name: str, most_bytes: int) -> BinaryIO | None:
        try:
            descriptor = os.open(self._root / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        source = os.fdopen(descriptor, "rb")
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            source.close()
            raise too_large(name, status.st_size)
        return source

    def _chunks(self, source: BinaryIO) -> Iterator[bytes]:
        with self._reaching():
            while chunk := source.read(CHUNK_BYTES):
                yield chunk

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names of the objects in the folder `prefix`, which ends with a slash or is empty."""
        with self._reaching():
            for path in sorted((self._root / prefix).rglob("*")):
                if path.is_file():
                    yield path.relative_to(self._root).as_posix()

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects."""
        with self._reaching():
            for name in names:
                (self._root / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _written(self, name: str) -> Iterator[Path]:
        (self._root / name).parent.mkdir(parents=True, exist_ok=True)
        target = self._root / name
        # Under the object's name: what a killed writer leaves is removed as the object would be.
        part = target.with_name(f".{target.name}.{secrets.token_hex(8)}{PART_SUFFIX}")
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unreachable(str(self._root), error.strerror or type(error).__name__) from error


class S3Bucket:
    """
    Objects in a bucket behind the protocol of S3.

    Endpoint, region and credentials come from the variables that AWS's own tools read. Creating is a
    conditional put (`If-None-Match: *`), which the service refuses where there is an object.
    """

    def __init__(self, bucket: str, prefix: str) -> None:
        self._uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self._library = _obstore(self._uri)
        from datetime import timedelta

        from obstore.store import S3Store

        environment = os.environ
        endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
        chosen: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            region=region or "us-east-1",
            client_options={
                "timeout": timedelta(seconds=REQUEST_SECONDS),
                "allow_http": (endpoint or "").startswith("http://"),
            },
            retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            **chosen,
        )

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one; return whether this call did."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._reaching():
            try:
                self._library.put(self._store, name, content, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def read(self, name: str) -> bytes | None:
        """Return an object's content; None if there is none."""
        with self._reaching():
            try:
                answer = self._library.get(self._store, name)
            except FileNotFoundError:
                return None
            if answer.meta["size"] > MAX_OBJECT_BYTES:
                raise too_large(name, answer.meta["size"])
            return bytes(answer.bytes())

    def put(self, name: str, content: bytes | Path) -> None:
        """Write an object from bytes or from a file."""
        with self._reaching():
            self._library.put(self._store, name, content)

    def fetch(self, name: str, path: Path, most_bytes: int) -> bool:
        """Write an object's content to a file; return whether there is such an object."""
        with self._reaching():
            try:
                answer = self._library.get(self._store, name)
            except FileNotFoundError:
                return False
            if answer.meta["size"] > most_bytes:
                raise too_large(name, answer.meta["size"])
            stream = answer.stream(min_chunk_size=CHUNK_BYTES)
        _write(path, self._chunks(stream))
        return True

    def _chunks(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        with self._reaching():
            yield from stream

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names of the objects that begin with `prefix`: empty, or ending with a slash."""
        with self._reaching():
            for chunk in self._library.list(self._store, prefix=prefix.rstrip("/")):
                yield from (each["path"] for each in chunk)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects."""
        in_parallel(self._remove, names)

    def _remove(self, name: str) -> None:
        with self._reaching(), contextlib.suppress(FileNotFoundError):
            self._library.delete(self._store, name)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise unreachable(self._uri, reason[:300]) from error


def bucket_at(uri: str) -> Bucket:
    """Return the objects at a URI of the forms s3://bucket/prefix and file:///folder. Raises UsageError."""
    check_uri(uri)
    scheme, _, rest = uri.partition("://")
    if scheme == "file":
        return FolderBucket(Path(rest))
    bucket, _, prefix = rest.strip("/").partition("/")
    return S3Bucket(bucket, prefix)


def too_large(name: str, size: int) -> FileDamaged:
    """Return the error for an object that Cortex did not write: no file, or larger than it can be."""
    return FileDamaged(
        f"the object {name} ({size:,} bytes) is not one that Cortex wrote.",
        "Look who may write there, and remove it; whose it was writes it again.",
    )


def unreachable(place: str, reason: str) -> StoreUnreachable:
    """Return the error for a bucket that does not answer, or refuses."""
    return StoreUnreachable(
        f"the store at {place} cannot be reached ({reason.rstrip('. ')}).",
        "Check the network, AWS_ENDPOINT_URL and the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY); "
        "what waits on this machine is kept.",
    )


def _obstore(uri: str) -> Any:
    try:
        import obstore
    except ImportError as missing:
        raise UsageError(
            f"a store at {uri} needs the library 'obstore', which is not installed.",
            f"{install_extra('s3')}, or set CORTEX_HOME to a folder.",
        ) from missing
    return obstore


def in_parallel(work: Callable[[_Item], object], items: Iterable[_Item]) -> None:
    """Do `work` for each item, some at once; the first error is raised when all have ended."""
    with ThreadPoolExecutor(TRANSFERS, thread_name_prefix="cortex-transfer") as pool:
        for done in [pool.submit(work, item) for item in items]:
            done.result()


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
