"""Where other assistants keep their transcripts, whose a file is, and in which folder it was written."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa

from cortex.storage.client_files import client_folder
from cortex.storage.files import path_text
from cortex.storage.staging import open_transcript
from cortex.transforms.transcripts.assistants import HEAD_BYTES, Head, assistant_of, head_of

# The first line of a rollout holds the instructions and tools given to the model; the longest seen has 60 kB.
FIRST_LINE_BYTES = 4 * 1024 * 1024
# Rollouts before September 2025 tell their folder in the first message only.
OPENING_BYTES = 256 * 1024

# The lists that Gemini CLI keeps beside chats; a hundred projects take 10 kB.
SMALL_FILE_BYTES = 4 * 1024 * 1024

# The first bytes of a file that zstd compressed.
ZSTD = b"\x28\xb5\x2f\xfd"

_OPENING_CWD = re.compile(rb"<cwd>([^<\\]+)</cwd>|Current working directory: ([^\\\"]+)")


def folders() -> dict[str, list[Path]]:
    """Return the folders where each assistant keeps its transcripts by default, whether they exist or not."""
    codex = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    gemini = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
    return {
        "claude": [client_folder() / "projects"],
        "codex": [codex / "sessions", codex / "archived_sessions"],
        "gemini": [gemini / "tmp"],
    }


def is_packed(path: Path) -> bool:
    """Return whether a transcript is compressed, as Codex CLI does after a week. Raises OSError."""
    with open_transcript(path) as file:
        return file.read(len(ZSTD)) == ZSTD


def assistant_in(path: Path) -> str:
    """Return whose transcript a file is, by its first bytes. Raises OSError."""
    return assistant_of(_start_of(path, HEAD_BYTES))


def head_in(path: Path, transcript: Path, projects: Callable[[], Iterable[str]]) -> Head | None:
    """
    Return what the beginning of another assistant's transcript says of it; None for Claude Code's.

    `path` is the file to read, `transcript` where the assistant keeps it. `projects` gives the folders that
    the store knows, for a chat that tells its own only as a hash. Raises OSError.
    """
    start = _start_of(path, HEAD_BYTES)
    if assistant_of(start) == "claude":
        return None
    if b"\n" not in start:
        start = _start_of(path, FIRST_LINE_BYTES)
    head = head_of(start, path_text(transcript))
    if head is None or head.cwd:
        return head
    cwd = _gemini_folder(transcript, head, projects) if head.assistant == "gemini" else _opening_folder(path)
    return replace(head, cwd=cwd)


def _start_of(path: Path, length: int) -> bytes:
    if not is_packed(path):
        with open_transcript(path) as file:
            return file.read(length)
    with open_transcript(path) as file, pa.input_stream(file, compression="zstd") as stream:
        start: bytes = stream.read(length)
    return start


def _opening_folder(path: Path) -> str | None:
    found = _OPENING_CWD.search(_start_of(path, OPENING_BYTES))
    return (found[1] or found[2]).decode("utf-8", "replace").strip() if found else None


def _gemini_folder(path: Path, head: Head, projects: Callable[[], Iterable[str]]) -> str | None:
    """Return the folder of a chat: as noted beside it, in the list of projects, or by its hash."""
    chats = next((folder for folder in path.parents if folder.name == "chats"), None)
    if chats is None:
        return None
    beside = chats.parent
    try:
        return _small_file(beside / ".project_root").decode("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    root = beside.parent.parent
    listed = _object_in(root / "projects.json").get("projects")
    by_path = listed if isinstance(listed, Mapping) else {}
    for folder, name in by_path.items():
        if name == beside.name:
            return str(folder)
    hashes = {head.project_hash, beside.name}
    candidates = [*by_path, *_object_in(root / "trustedFolders.json"), *projects()]
    known = (name for name in candidates if hashlib.sha256(os.fsencode(name)).hexdigest() in hashes)
    return next(known, path_text(beside))


def _object_in(path: Path) -> Mapping[str, object]:
    try:
        found = orjson.loads(_small_file(path))
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _small_file(path: Path) -> bytes:
    with open_transcript(path) as file:
        return file.read(SMALL_FILE_BYTES)
