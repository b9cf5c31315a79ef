"""Where each assistant keeps its transcripts, and Claude Code the notes for itself."""

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from cortex.hooks import ticket
from cortex.storage.filesystem.files import modified_at, path_text
from cortex.storage.staging.staging import SESSION_DATABASE, is_in_database
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.transcripts.assistants import KNOWN_ASSISTANTS, Assistant, Head

# -- Where each assistant keeps its transcripts, and in which folder a chat of Gemini CLI was written.

# The lists that Gemini CLI keeps next to chats; a hundred projects take 10 kB.
SMALL_FILE_BYTES = 4 * 1024 * 1024

# Files next to transcripts with the same ending but another format: the client's list of prompts.
NOT_TRANSCRIPTS = frozenset({"history.jsonl"})
_FILES = [assistant.files for assistant in KNOWN_ASSISTANTS.values() if assistant.files]


def folders() -> dict[str, list[Path]]:
    """Return the folders where each assistant keeps its transcripts by default, whether they exist or not."""
    return {
        name: [_home_of(assistant) / folder for folder in assistant.folders]
        for name, assistant in KNOWN_ASSISTANTS.items()
    }


def _home_of(assistant: Assistant) -> Path:
    named = os.environ.get(assistant.variable)
    return Path(named).expanduser().absolute() if named else Path.home() / assistant.home


def find_transcripts(path: Path) -> list[Path]:
    """
    Return the transcripts at `path`: the file itself, or every *.jsonl below the folder, sorted.

    Subagents' transcripts are included, so are Gemini CLI's chats/session-*.json and Codex CLI's compressed
    rollout-*.jsonl.zst; the client's list of prompts (history.jsonl) is not. Of opencode's database each
    session is one. A file that is named is taken whatever its ending. Raises NotFound and UsageError.
    """
    if path.is_file():
        return sessions_in(path) if SESSION_DATABASE.fullmatch(path.name) else [path]
    if is_in_database(path):
        return [path]
    if not path.exists():
        raise NotFound(f"there is no file or folder '{path}'.", "Check the spelling of the path.")
    if not path.is_dir():
        raise UsageError(
            f"'{path}' is neither a file nor a folder.", "Name a transcript or a folder of them."
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"folder '{path}' may not be read.", "Give yourself the right to read it.")
    # A project's folder may be a link to another disk; what it leads to is looked through, but no link in it.
    linked = [each for each in path.iterdir() if each.is_symlink() and each.is_dir()]
    linked = [each for each in linked if not each.resolve().is_relative_to(path.resolve())]
    files = [
        Path(folder, name)
        for top in (path, *linked)
        for folder, _, names in os.walk(top)
        for name in names
        if (name.endswith(".jsonl") and name not in NOT_TRANSCRIPTS)
        or _is_others(f"{Path(folder).name}/{name}")
        or SESSION_DATABASE.fullmatch(name)
    ]
    return sorted(
        each for file in files for each in (sessions_in(file) if file.name.endswith(".db") else [file])
    )


def _is_others(name: str) -> bool:
    return any(files.fullmatch(name) for files in _FILES)


def folder_of_chat(path: Path, head: Head, projects: Callable[[], Iterable[str]]) -> str | None:
    """Return the folder of a chat: as noted next to it, in the list of projects, or by its hash."""
    chats = next((folder for folder in path.parents if folder.name == "chats"), None)
    if chats is None:
        return None
    chat_root = chats.parent
    try:
        return _small_file(chat_root / ".project_root").decode("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    root = chat_root.parent.parent
    listed = _object_in(root / "projects.json").get("projects")
    by_path = listed if isinstance(listed, Mapping) else {}
    for folder, name in by_path.items():
        if name == chat_root.name:
            return str(folder)
    hashes = {head.project_hash, chat_root.name}
    candidates = [*by_path, *_object_in(root / "trustedFolders.json"), *projects()]
    known = (name for name in candidates if hashlib.sha256(os.fsencode(name)).hexdigest() in hashes)
    return next(known, path_text(chat_root))


def _object_in(path: Path) -> Mapping[str, object]:
    try:
        document = orjson.loads(_small_file(path))
    except (OSError, orjson.JSONDecodeError):
        return {}
    return document if isinstance(document, dict) else {}


def _small_file(path: Path) -> bytes:
    with os.fdopen(ticket.open_regular(os.fspath(path)), "rb") as file:
        return file.read(SMALL_FILE_BYTES)


# -- opencode's sessions: rows of a database, as documents.

# As long as opencode itself waits for another writer.
_WAIT_SECONDS = 5.0
# Tables since version 2, and before; a database that was taken over has both, and the newer count.
_NEWER, _OLDER = "session_v2", "session"
_MESSAGES = {_NEWER: "session_message", _OLDER: "message"}


def sessions_in(database: Path) -> list[Path]:
    """Return the path of each session of a database; none if it cannot be read."""
    try:
        with _reading(database) as (rows, tables):
            ids = {row[0] for table in tables for row in rows(f"select id from {table}")}
    except OSError:
        return []
    return sorted(database / f"{each}.json" for each in ids if re.fullmatch(r"ses_\w{1,100}", str(each)))


def changed_at(path: Path) -> float:
    """Return when a transcript was last changed, in seconds since 1970; 0 if it is gone."""
    if not is_in_database(path):
        return modified_at(path)
    try:
        with _reading(path.parent) as (rows, tables):
            table = _table_of(path.stem, rows, tables)
            last = f"select max(time_updated) from {_MESSAGES[table]} where session_id = ?"
            return float(rows(last, path.stem)[0][0] or 0) / 1000
    except (OSError, ValueError):
        return 0.0


def session_document(path: Path) -> bytes:
    """Return a session of a database as `opencode export` prints it. Raises OSError."""
    session_id = path.stem
    with _reading(path.parent) as (rows, tables):
        table = _table_of(session_id, rows, tables)
        [about] = rows(f"select directory, version, parent_id from {table} where id = ?", session_id)
        if table == _NEWER:
            query = "select id, type, data from session_message where session_id = ? order by seq, id"
            messages = [
                {"info": {**info, "id": name, "type": kind}, "parts": info.get("content") or []}
                for name, kind, data in rows(query, session_id)
                for info in [_parsed(data)]
            ]
        else:
            parts: dict[str, list[object]] = {}
            query = "select message_id, data from part where session_id = ? order by message_id, id"
            for name, data in rows(query, session_id):
                parts.setdefault(name, []).append(_parsed(data))
            query = "select id, data from message where session_id = ? order by time_created, id"
            messages = [
                {"info": {**_parsed(data), "id": name}, "parts": parts.get(name, [])}
                for name, data in rows(query, session_id)
            ]
    info = {"id": session_id, **dict(zip(("directory", "version", "parentID"), about, strict=True))}
    return orjson.dumps({"info": info, "messages": messages})


def _table_of(session_id: str, rows: "_Rows", tables: list[str]) -> str:
    for table in tables:
        if rows(f"select id from {table} where id = ?", session_id):
            return table
    raise FileNotFoundError(f"no session {session_id}")


def _parsed(data: object) -> dict[str, object]:
    try:
        value = orjson.loads(data) if isinstance(data, str | bytes) else None
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {}


_Rows = Callable[..., list[tuple[Any, ...]]]


@contextmanager
def _reading(database: Path) -> Iterator[tuple[_Rows, list[str]]]:
    """Give what asks a database, for reading alone, and which tables of sessions it has. Raises OSError."""
    os.close(ticket.open_regular(os.fspath(database)))
    try:
        address = f"{database.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)) as connection:

            def rows(query: str, *values: object) -> list[tuple[Any, ...]]:
                return connection.execute(query, values).fetchall()

            names = {row[0] for row in rows("select name from sqlite_master where type = 'table'")}
            yield rows, [table for table in (_NEWER, _OLDER) if {table, _MESSAGES[table]} <= names]
    except sqlite3.Error as error:
        raise OSError(0, str(error)) from error


# -- The folders in which Claude Code keeps notes for itself, one next to each project's transcripts.

_FOLDER = "memory"
# The program's own index is cut at 25 KB; a folder of a year has some dozens of notes.
MAX_NOTE_BYTES = 64 * 1024
_MAX_NOTES = 1_000


def notes_below(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """
    Yield (name of the transcripts' folder, text by file name) for the notes at `path`.

    `path` is a folder of notes, the folder of a project's transcripts, or the one with all of these. What is
    no regular file of this user, or longer than MAX_NOTE_BYTES, is passed over. Raises NotFound if there
    are none.
    """
    folders = [path] if path.name == _FOLDER else [path / _FOLDER]
    if not folders[0].is_dir():
        folders = sorted(folder for folder in path.glob(f"*/{_FOLDER}") if folder.is_dir())
    texts = [(folder.absolute().parent.name, _texts_in(folder)) for folder in folders]
    if not any(files for _, files in texts):
        raise NotFound(f"there are no notes in {path}.", "They are in ~/.claude/projects/*/memory/*.md")
    yield from ((name, files) for name, files in texts if files)


def _texts_in(folder: Path) -> dict[str, str]:
    texts = {}
    for file in sorted(folder.glob("*.md"))[:_MAX_NOTES]:
        try:
            with os.fdopen(ticket.open_regular(os.fspath(file)), "rb") as opened:
                raw = opened.read(MAX_NOTE_BYTES + 1)
        except OSError:
            continue
        if len(raw) <= MAX_NOTE_BYTES:
            texts[file.name] = raw.decode("utf-8", "replace")
    return texts
