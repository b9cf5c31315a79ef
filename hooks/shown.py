"""What a session was shown already, so that nothing is shown twice: a small file a session in staging."""

from __future__ import annotations

import json
import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import branches, ticket
    from cortex.hooks.evidence.statements import KNOWN_SHARE
    from cortex.hooks.evidence.text import words_in
else:
    import branches
    import ticket
    from evidence.statements import KNOWN_SHARE
    from evidence.text import words_in

FOLDER = "shown"

# Sessions remembered; whoever comes back to an older one may see a note again. 256 files have 3 MB.
MAX_SESSIONS = 256

# Statements remembered in a session: what fits into all of its notes and a brief.
MAX_STATEMENTS = 400
_MAX_BYTES = 256 * 1024


class ShownRecord:
    """
    What one session was shown: `ids` of notes, `tokens` given in all, `prompts` that were looked at, whether
    the person was warned of a full context.

    Of statements only hashes of their words are kept: what is forgotten stands in no such file.
    """

    def __init__(self, record: dict[str, object]) -> None:
        self.ids = [str(name) for name in _list(record, "ids")]
        self.statements = [
            frozenset(words) for words in _list(record, "statements") if isinstance(words, list)
        ]
        self.tokens, self.prompts = _number(record, "tokens"), _number(record, "prompts")
        self.is_warned = record.get("is_warned") is True

    def is_known(self, text: str) -> bool:
        """Return whether most words of a text stood in one statement that was shown."""
        words = _hashes(text)
        return any(len(words & other) >= KNOWN_SHARE * len(words) for other in self.statements)

    def add(self, id: str, statements: list[str], tokens: int) -> None:
        """Take in a note."""
        self.ids.append(id)
        self.statements += [_hashes(text) for text in statements]
        self.tokens += tokens


def begin(staging: str, session_id: str, output: bytes | None) -> None:
    """Forget what the session was shown, bar the lines of the brief in the `output` that it is handed now."""
    brief = json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""
    lines = [line.partition(branches.MARK_BEGINS)[0] for line in brief.split("\n") if line.startswith("- ")]
    if lines or os.path.exists(_path(staging, session_id)):
        shown = ShownRecord({})
        shown.statements = [_hashes(line) for line in lines]
        save_record(staging, session_id, shown)


def read(staging: str, session_id: str) -> ShownRecord:
    """Return what the session was shown; a file that cannot be read is as one that says nothing."""
    try:
        with open(_path(staging, session_id), "rb") as file:
            record = json.loads(file.read(_MAX_BYTES))
    except (FileNotFoundError, ValueError):
        record = None
    return ShownRecord(record if isinstance(record, dict) else {})


def save_record(staging: str, session_id: str, shown: ShownRecord) -> None:
    """Keep what the session was shown."""
    path = _path(staging, session_id)
    record = {
        "ids": shown.ids[-MAX_STATEMENTS:],
        "statements": [sorted(words) for words in shown.statements[-MAX_STATEMENTS:]],
        "tokens": shown.tokens,
        "prompts": shown.prompts,
        "is_warned": shown.is_warned,
    }
    is_new = not os.path.exists(path)
    ticket.write_whole(staging, path, json.dumps(record, separators=(",", ":")).encode(), durable=False)
    if is_new:
        _keep_newest(os.path.dirname(path))


def _hashes(text: str) -> frozenset[int]:
    return frozenset(zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words_in(text))


def _list(record: dict[str, object], name: str) -> list:  # type: ignore[type-arg]
    value = record.get(name)
    return value if isinstance(value, list) else []


def _number(record: dict[str, object], name: str) -> int:
    value = record.get(name)
    return value if isinstance(value, int) else 0


def _path(staging: str, session_id: str) -> str:
    return os.path.join(staging, FOLDER, f"{ticket.path_hash(session_id):016x}")


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
