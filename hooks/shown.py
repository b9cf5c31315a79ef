"""
What a session was shown: a small file a session in staging, so that nothing is shown twice, and a row of the
log of calls, by which what came of it is counted.
"""

from __future__ import annotations

import json
import os
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import branches, identity, ticket
    from cortex.hooks.evidence.statements import KNOWN_SHARE
    from cortex.hooks.evidence.text import words_in
else:
    import branches
    import identity
    import ticket
    from evidence.statements import KNOWN_SHARE
    from evidence.text import words_in

FOLDER = "shown"

# Sessions remembered; whoever comes back to an older one may see a note again. 256 files have 3 MB.
MAX_SESSIONS = 256

# Statements remembered in a session: what fits into all of its notes and a brief.
MAX_STATEMENTS = 400
_MAX_BYTES = 256 * 1024

# Where what was shown waits for a run, as a row of the table `calls` whose transport is this; with more
# waiting no run has taken any in for months.
CALLS_FOLDER, SHOWN_TRANSPORT = "calls", "shown"
# The column of `uses` that counts it, by the row's `tool`: the event of a hook, or the command.
COUNTED_AS = {ticket.SESSION_START: "briefs", ticket.USER_PROMPT: "prompts", "recall": "recalls"}
MAX_WAITING = 1_000
_MAX_SESSION_CHARS = 200


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
    record = record_of_brief(brief)
    if record.statements or os.path.exists(_path(staging, session_id)):
        save_record(staging, session_id, record)


def record_of_brief(brief: str) -> ShownRecord:
    """Return the record of a session that was handed a brief and nothing else."""
    lines = [line.partition(branches.MARK_BEGINS)[0] for line in brief.split("\n") if line.startswith("- ")]
    return ShownRecord({"statements": [list(_hashes(line)) for line in lines]})


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


def log_shown(
    staging: str, tool: str, project_id: str, session_id: str, memory_ids: list[str], tokens: int, now_ns: int
) -> None:
    """
    Note in the log of calls which memories a session was shown, by their ids, and all tokens.

    `tool` says where: the event of the hook. It reinforces nothing: nobody asked for them.
    """
    folder = os.path.join(staging, CALLS_FOLDER)
    if not tokens or is_full(folder):
        return
    row = row_of_shown(tool, project_id, session_id, memory_ids, tokens, instant(now_ns))
    path = os.path.join(folder, f"{row['call_id']}.json")
    try:  # noqa: SIM105
        ticket.write_whole(staging, path, json.dumps(row).encode(), durable=False)
    except OSError:
        pass  # a count is lost, which is better than what was to be shown


def row_of_shown(
    tool: str, project_id: str, session_id: str, memory_ids: list[str], tokens: int, at: str
) -> dict[str, object]:
    """Return the row of `calls` that says what a session was shown at an instant."""
    session = session_id[:_MAX_SESSION_CHARS].encode("utf-8", "replace").decode()
    arguments = shown_arguments(session, memory_ids, tokens)
    return {
        "call_id": identity.content_id("shown", at, tool, project_id, arguments),
        "called_at": at,
        "project_id": project_id,
        "caller": "cortex",
        "transport": SHOWN_TRANSPORT,
        "tool": tool,
        "arguments": arguments,
        "outcome": "ok",
        "seconds": 0.0,
        "usd": 0.0,
    }


def shown_arguments(session_id: str, memory_ids: list[str], tokens: int | None) -> str:
    """Return what a row of `calls` says of what was shown, as JSON; tokens that nobody noted are None."""
    values = {"memory_ids": memory_ids, "session_id": session_id, "tokens": tokens}
    return json.dumps(values, sort_keys=True)


def shown_in(call: dict[str, object]) -> tuple[str, list[str], int | None] | None:
    """Return the session, the memories and the tokens that a row of `calls` says it was shown, or None."""
    if call["transport"] != SHOWN_TRANSPORT:
        return None
    try:
        arguments = json.loads(str(call["arguments"]))
        tokens = arguments.get("tokens")
        ids = [str(name) for name in arguments["memory_ids"]]
        return str(arguments["session_id"]), ids, tokens if isinstance(tokens, int) else None
    except (AttributeError, ValueError, KeyError, TypeError):  # somebody else's file
        return None


def instant(now_ns: int) -> str:
    """Return an instant as entries have it: UTC, with microseconds."""
    seconds, rest_ns = divmod(now_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest_ns // 1000:06d}+00:00"


def is_full(folder: str) -> bool:
    """Return whether more waits in a folder than any run would leave."""
    try:
        return len(os.listdir(folder)) >= MAX_WAITING
    except FileNotFoundError:
        return False


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
