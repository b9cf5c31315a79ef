"""What a session was shown already, so that nothing is shown twice: a small file a session in staging."""

from __future__ import annotations

import json
import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import branches, ticket
else:
    import branches
    import ticket

FOLDER = "shown"

# Sessions remembered; whoever comes back to an older one may see a note again. 256 files have 300 kB.
MAX_SESSIONS = 256

# Notes remembered in a session: 5 each with 200 prompts.
MAX_NOTES = 1_000
_MAX_BYTES = 64 * 1024


def begin(staging: str, session_id: str, output: bytes | None) -> None:
    """Forget what the session was shown, bar the lines of the brief in the `output` that it is handed now."""
    brief = json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""
    lines = [mark_of(line) for line in brief.split("\n") if line.startswith("- ")]
    path = _path(staging, session_id)
    if lines or os.path.exists(path):
        _write(staging, session_id, {"brief": lines, "notes": []})


def seen(staging: str, session_id: str) -> tuple[frozenset[int], list[str]]:
    """Return the marks of the brief's lines and the ids of the notes that the session was shown."""
    record = _read(_path(staging, session_id))
    return frozenset(record.get("brief", ())), list(record.get("notes", ()))


def add(staging: str, session_id: str, note_ids: list[str]) -> None:
    """Remember that the session was shown these notes too."""
    record = _read(_path(staging, session_id))
    notes = [*record.get("notes", ()), *note_ids]
    _write(staging, session_id, {"brief": record.get("brief", []), "notes": notes[-MAX_NOTES:]})


def mark_of(line: str) -> int:
    """Return what a line of the brief is known by, whatever branch it is marked for."""
    line = line.partition(branches.MARK_BEGINS)[0]
    return zlib.crc32(line.encode("utf-8", "surrogatepass"))


def _path(staging: str, session_id: str) -> str:
    return os.path.join(staging, FOLDER, f"{ticket.path_hash(session_id):016x}")


def _read(path: str) -> dict[str, list]:  # type: ignore[type-arg]
    try:
        with open(path, "rb") as file:
            record = json.loads(file.read(_MAX_BYTES))
    except (FileNotFoundError, ValueError):
        return {}
    is_known = isinstance(record, dict) and all(isinstance(part, list) for part in record.values())
    return record if is_known else {}


def _write(staging: str, session_id: str, record: dict[str, list]) -> None:  # type: ignore[type-arg]
    path = _path(staging, session_id)
    is_new = not os.path.exists(path)
    ticket.write_whole(staging, path, json.dumps(record, separators=(",", ":")).encode(), durable=False)
    if is_new:
        _keep_newest(os.path.dirname(path))


def _keep_newest(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) <= MAX_SESSIONS:
        return
    paths = [os.path.join(folder, name) for name in names]
    for path in sorted(paths, key=_modified)[: len(names) - MAX_SESSIONS]:
        try:  # noqa: SIM105
            os.unlink(path)
        except OSError:
            pass  # another session was first


def _modified(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0
