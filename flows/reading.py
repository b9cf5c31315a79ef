"""Reading a transcript from where the last run stopped, in pieces of bounded size and whole lines."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from cortex.storage.manifest import Cursor
from cortex.storage.staging import open_transcript

# A piece of this size and its rows keep a run below 1 GB; the longest genuine line seen is 2.1 MB
# (a pasted image), so a line that fills a whole piece is no conversation.
PIECE_BYTES = 64 * 1024 * 1024
HEAD_BYTES = 4096

_CWD = re.compile(rb'"cwd":\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Piece:
    """
    Some whole lines of a transcript; `overlong` instead stands for one line that was passed over.

    `start` is where its bytes begin; for an overlong line, where reading goes on.
    """

    data: bytes
    start: int
    first_line: int
    is_last: bool
    overlong: bool = False


def pieces(path: Path, start: int, first_line: int, piece_bytes: int = PIECE_BYTES) -> Iterator[Piece]:
    """Yield the file's bytes from `start` on, cut after a newline; the last piece may end within a line."""
    with open_transcript(path) as file:
        file.seek(start)
        while data := file.read(piece_bytes):
            is_last = len(data) < piece_bytes
            end = len(data) if is_last else data.rfind(b"\n") + 1
            if end == 0:
                is_last = not _skip_line(file)
                start = start if is_last else file.tell()
                yield Piece(b"", start, first_line, is_last, overlong=True)
                if is_last:  # it may grow still: passed over once it has ended
                    return
                first_line += 1
                continue
            yield Piece(data[:end], start, first_line, is_last)
            first_line += data.count(b"\n", 0, end)
            start += end
            file.seek(start)


def unpacked(path: Path, piece_bytes: int = PIECE_BYTES) -> Iterator[Piece]:
    """Yield what `pieces` would of a compressed transcript, from its start; it is never held as a whole."""
    rest, first_line, is_skipping = b"", 1, False
    with open_transcript(path) as file, pa.input_stream(file, compression="zstd") as stream:
        while data := stream.read(piece_bytes):
            if is_skipping:
                begin = data.find(b"\n") + 1
                if not begin:
                    continue
                yield Piece(b"", 0, first_line, is_last=False, overlong=True)
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
        yield Piece(rest, 0, first_line, is_last=True, overlong=is_skipping)


def _skip_line(file: BinaryIO) -> bool:
    """Move behind the next newline without keeping what lies before it; return whether there was one."""
    while block := file.read(1024 * 1024):
        found = block.find(b"\n")
        if found >= 0:
            file.seek(found + 1 - len(block), 1)
            return True
    return False


def head_of(path: Path, length: int) -> str:
    """Return a hash of the file's first `length` bytes."""
    with open_transcript(path) as file:
        return hashlib.sha256(file.read(length)).hexdigest()[:16]


def start_from(path: Path, cursor: Cursor | None) -> tuple[int, int]:
    """Return (byte, line) to read from: behind the cursor, or the start when another file took the place."""
    if cursor is None or path.stat().st_size < cursor.read_bytes:
        return 0, 1
    if head_of(path, cursor.head_bytes) != cursor.head:
        return 0, 1
    return cursor.read_bytes, cursor.read_lines + 1


def working_directory(path: Path) -> str | None:
    """Return the first working directory that the transcript names, or None."""
    import orjson

    with open_transcript(path) as file:
        found = _CWD.search(file.read(4 * 1024 * 1024))
    if not found:
        return None
    try:
        named = orjson.loads(b'"' + found.group(1) + b'"')
    except orjson.JSONDecodeError:
        return None
    return named or None if "\0" not in named else None
