"""A transcript file, opened once: whose it is, what its beginning says, its lines in bounded pieces."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import orjson
import pyarrow as pa

from cortex.hooks import ticket
from cortex.storage.filesystem.files import path_text
from cortex.storage.lake.manifest import Cursor
from cortex.storage.staging.assistant_folders import changed_at, folder_of_chat, session_document
from cortex.storage.staging.staging import is_in_database
from cortex.transforms.transcripts.assistants import HEAD_BYTES, KNOWN_ASSISTANTS, Head, assistant_of, head_of
from cortex.transforms.transcripts.transcript import FILE_TOO_LONG, LINE_TOO_LONG

# A piece of this size and its rows keep a run below 1 GB; the longest genuine line seen is 2.1 MB
# (a pasted image), so a line that fills a whole piece is not conversation.
PIECE_BYTES = 64 * 1024 * 1024

# So much of a compressed transcript is unpacked: a small file can hold any amount.
UNPACKED_BYTES_MAX = 4 * PIECE_BYTES

# A file whose first bytes changed is another file, to be read from its start.
FINGERPRINT_BYTES = 4096

# The first line of a rollout holds the instructions and tools given to the model; the longest seen has 60 kB.
FIRST_LINE_BYTES = 4 * 1024 * 1024
# Rollouts before September 2025 name their folder only in the first message.
OPENING_BYTES = 256 * 1024

# The first bytes of a file that zstd compressed.
ZSTD = b"\x28\xb5\x2f\xfd"

_CWD = re.compile(rb'"cwd":\s*"((?:[^"\\]|\\.)*)"')
# Of a message's own record, not within the text of one. Records are mostly shorter than what is looked at.
_TIMESTAMP = re.compile(rb'[{,]\s*"timestamp":\s*"([^"\\]{1,40})"')
ENDING_BYTES = 256 * 1024
_OPENING_CWD = re.compile(rb"<cwd>([^<\\]+)</cwd>|Current working directory: ([^\\\"]+)")

# Lines that are appended; lines that were compressed; one JSON object that is rewritten each time.
Format = Literal["lines", "packed", "document"]


class Position(NamedTuple):
    """Where reading begins: the byte, from 0, and the number of the line that begins there, from 1."""

    byte: int
    line: int


START = Position(0, 1)


class FileStamp(NamedTuple):
    """What tells a file that changed from one that did not: its bytes, and when it was written (ns)."""

    size: int
    modified_ns: int


@dataclass(frozen=True)
class Piece:
    """
    Some whole lines of a transcript; `overlong` instead says why something was passed over.

    `start` is where its bytes begin; for an overlong line, where reading goes on.
    """

    data: bytes
    start: int
    first_line: int
    is_last: bool
    overlong: str = ""


class Transcript:
    """
    An open transcript: `path` is where the assistant keeps it.

    `size` is its bytes when it was opened, `stamp` tells it from what it becomes.
    """

    def __init__(
        self, file: BinaryIO, path: Path, projects: Callable[[], Iterable[str]], stamp: FileStamp
    ) -> None:
        self._file, self.path, self._projects = file, path, projects
        self.size, self.stamp = stamp.size, stamp

    @cached_property
    def assistant(self) -> str:
        """Whose transcript it is, by its first bytes."""
        return assistant_of(self._beginning(HEAD_BYTES))

    @cached_property
    def head(self) -> Head | None:
        """What the beginning of another assistant's transcript says of all of it; None for Claude Code's."""
        if KNOWN_ASSISTANTS[self.assistant].adapter is None:
            return None
        beginning = self._beginning(HEAD_BYTES)
        if b"\n" not in beginning:
            beginning = self._beginning(FIRST_LINE_BYTES)
        head = head_of(beginning, path_text(self.path))
        if head is None or head.cwd:
            return head
        is_chat = head.project_hash is not None
        cwd = folder_of_chat(self.path, head, self._projects) if is_chat else self._opening_folder()
        return replace(head, cwd=cwd)

    @cached_property
    def format(self) -> Format:
        """How the file is written; Claude Code only appends lines."""
        if self.head is None:
            return "lines"
        return "document" if self.head.is_document else "packed" if self._is_packed else "lines"

    @cached_property
    def cwd(self) -> str | None:
        """The first working directory that the transcript names, if it names one."""
        if self.head is not None:
            return self.head.cwd
        match = _CWD.search(self._bytes(4 * 1024 * 1024))
        if match is None:
            return None
        try:
            cwd: str = orjson.loads(b'"' + match[1] + b'"')
        except orjson.JSONDecodeError:
            return None
        return cwd if cwd and "\0" not in cwd else None

    @property
    def last_message_at(self) -> datetime | None:
        """When its last message was said, which a copy keeps, unlike its file's time; None if unknown."""
        self._file.seek(max(0, self.size - ENDING_BYTES))
        for match in reversed(_TIMESTAMP.findall(self._file.read(ENDING_BYTES))):
            with suppress(ValueError):
                return datetime.fromisoformat(match.decode("utf-8", "replace")).astimezone(UTC)
        return None

    def fingerprint(self, length: int) -> str:
        """Return a hash of the file's first `length` bytes, as they are now."""
        return hashlib.sha256(self._bytes(length)).hexdigest()[:16]

    def position_behind(self, cursor: Cursor | None) -> Position:
        """Return where to read on: behind the cursor, or at the start when another file took the place."""
        if cursor is None or self.size < cursor.read_bytes:
            return START
        if self.fingerprint(cursor.head_bytes) != cursor.head:
            return START
        return Position(cursor.read_bytes, cursor.read_lines + 1)

    def pieces(self, position: Position = START, piece_bytes: int | None = None) -> Iterator[Piece]:
        """Yield the lines from `position` on; a compressed file is read from its start."""
        piece_bytes = piece_bytes or PIECE_BYTES
        if self.format == "packed":
            return _unpacked_pieces(self._file, piece_bytes)
        return _pieces(self._file, position, piece_bytes)

    def document(self) -> bytes:
        """Return the whole file, at most PIECE_BYTES of it."""
        return self._bytes(PIECE_BYTES)

    @cached_property
    def _is_packed(self) -> bool:
        return self._bytes(len(ZSTD)) == ZSTD

    def _bytes(self, length: int) -> bytes:
        self._file.seek(0)
        return self._file.read(length)

    def _beginning(self, length: int) -> bytes:
        """Return the first bytes of what was written, before it was compressed."""
        if not self._is_packed:
            return self._bytes(length)
        with _unpacked(self._file) as stream:
            beginning: bytes = stream.read(length)
        return beginning

    def _opening_folder(self) -> str | None:
        match = _OPENING_CWD.search(self._beginning(OPENING_BYTES))
        return (match[1] or match[2]).decode("utf-8", "replace").strip() if match else None


@contextmanager
def open_transcript(
    path: Path, kept_at: Path | None = None, projects: Callable[[], Iterable[str]] = tuple
) -> Iterator[Transcript]:
    """
    Open a transcript for reading: a regular file of the user, without waiting, or a session of a database.
    Raises OSError.

    `path` is the file to read, `kept_at` where the assistant keeps it, if that is another place. `projects`
    gives the folders that the store knows, for a chat that names its own only by a hash.
    """
    if is_in_database(path):
        document, changed_ns = session_document(path), int(changed_at(path) * 1e9)
        yield Transcript(BytesIO(document), path, projects, FileStamp(len(document), changed_ns))
        return
    with os.fdopen(ticket.open_regular(os.fspath(path)), "rb") as file:
        status = os.fstat(file.fileno())
        stamp = FileStamp(status.st_size, status.st_mtime_ns)
        yield Transcript(file, kept_at or path, projects, stamp)


def _pieces(file: BinaryIO, position: Position, piece_bytes: int) -> Iterator[Piece]:
    """Yield the bytes from `position` on, cut after a newline; the last piece may end within a line."""
    start, first_line = position
    file.seek(start)
    while data := file.read(piece_bytes):
        is_last = len(data) < piece_bytes
        end = len(data) if is_last else data.rfind(b"\n") + 1
        if end == 0:
            is_last = not _skip_line(file)
            start = start if is_last else file.tell()
            yield Piece(b"", start, first_line, is_last, LINE_TOO_LONG)
            if is_last:  # it may grow still: passed over once it has ended
                return
            first_line += 1
            continue
        data = data[:end]  # and not beside what it was cut from
        yield Piece(data, start, first_line, is_last)
        first_line += data.count(b"\n")
        start += end
        file.seek(start)


def _skip_line(file: BinaryIO) -> bool:
    """Move behind the next newline without keeping what is before it; return whether there was one."""
    while block := file.read(1024 * 1024):
        newline = block.find(b"\n")
        if newline >= 0:
            file.seek(newline + 1 - len(block), 1)
            return True
    return False


def _unpacked_pieces(file: BinaryIO, piece_bytes: int) -> Iterator[Piece]:
    """Yield what `_pieces` would of a compressed transcript, from its start; it is never held as a whole."""
    rest, first_line, is_skipping, size = b"", 1, False, 0
    with _unpacked(file) as stream:
        while data := stream.read(piece_bytes):
            size += len(data)
            if size > UNPACKED_BYTES_MAX:
                yield Piece(b"", 0, first_line, is_last=True, overlong=FILE_TOO_LONG)
                return
            if is_skipping:
                begin = data.find(b"\n") + 1
                if not begin:
                    continue
                yield Piece(b"", 0, first_line, is_last=False, overlong=LINE_TOO_LONG)
                first_line, is_skipping, data = first_line + 1, False, data[begin:]
            data = rest + data
            end = data.rfind(b"\n") + 1
            if end:
                yield Piece(data[:end], 0, first_line, is_last=False)
                first_line += data.count(b"\n", 0, end)
            rest = data[end:]
            if len(rest) > piece_bytes:
                rest, is_skipping = b"", True
    if rest or is_skipping:
        yield Piece(rest, 0, first_line, is_last=True, overlong=LINE_TOO_LONG if is_skipping else "")


class _Borrowed(RawIOBase):
    """A file that a stream reads and does not close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read from the file."""
        return self._file.read(size)

    def close(self) -> None:
        """Leave it open."""


def _unpacked(file: BinaryIO) -> pa.NativeFile:
    file.seek(0)
    return pa.input_stream(_Borrowed(file), compression="zstd")
