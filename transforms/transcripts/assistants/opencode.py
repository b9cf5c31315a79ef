"""
opencode: a message of a session as turns, its tools by common names. What is known: docs/other-assistants.md.

A session is one document, `{"info": …, "messages": [{"info": …, "parts": […]}]}`, as `opencode export` prints
it; of one in opencode's database, storage makes the same.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import orjson

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.assistants.codex import patched
from cortex.transforms.transcripts.assistants.parsed_turn import (
    BARE_COMMAND,
    Adapter,
    Assistant,
    Head,
    ParsedTurn,
    asked,
    call,
    fields_of,
    plan,
    tool_result,
)
from cortex.transforms.transcripts.records import Record, Utterance, spoken, string

# -- opencode's tools under the names that the layers know, and how a call ended.

_NAMES = {
    "bash": "Bash",
    "shell": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "multiedit": "MultiEdit",
    "patch": "apply_patch",
    "apply_patch": "apply_patch",
    "todowrite": "TodoWrite",
    "todoread": "TodoRead",
    "grep": "Grep",
    "glob": "Glob",
    "list": "LS",
    "lsp": "LSP",
    "skill": "Skill",
    "task": "Task",
    "question": "AskUserQuestion",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "codesearch": "WebSearch",
}
_KEYS = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string"}
_REFUSED = "The user rejected permission"
_ABORTED = "Tool execution aborted"


def call_of(name: str, given: object) -> tuple[str, Record]:
    """
    Return a call's tool and arguments under the names that the layers know.

    A tool that is not opencode's own is a stranger's: it names a server's as `server_tool`.

    >>> call_of("edit", {"filePath": "a.py", "oldString": "1", "newString": "2"})
    ('Edit', {'file_path': 'a.py', 'old_string': '1', 'new_string': '2'})
    >>> call_of("tides_levels", {})
    ('mcp__tides_levels', {})
    """
    name = _NAMES.get(name, f"mcp__{name}")
    fields: dict[str, object] = {_KEYS.get(key, key): value for key, value in fields_of(given).items()}
    if name == "apply_patch":
        return patched(string(fields.get("patchText")))
    if name == "TodoWrite":
        return name, plan(fields.get("todos"), "content")
    return name, fields


def result_of(state: Record) -> tuple[str, str] | None:
    """
    Return what came back from a call and one of TOOL_STATUSES; None while it runs.

    >>> result_of({"status": "completed", "output": "1 failed", "metadata": {"exit": 1}})
    ('Exit code 1\\n1 failed', 'error')
    >>> result_of({"status": "error", "error": "The user rejected permission to use this tool."})
    ('The user rejected permission to use this tool.', 'rejected')
    """
    status, error = state.get("status"), state.get("error")
    if status == "error":
        text = string(fields_of(error).get("message")) or string(error) or _text(state)
        refused = "rejected" if text.startswith(_REFUSED) else "error"
        return text, "cancelled" if text.startswith(_ABORTED) else refused
    if status != "completed":
        return None
    exit_code, text = fields_of(state.get("metadata")).get("exit"), _text(state)
    if isinstance(exit_code, int) and exit_code:
        return f"Exit code {exit_code}\n{text}", "error"
    return text, "ok"


def _text(state: Record) -> str:
    """Return the output of a call: a string up to opencode 1, parts of text since 2."""
    content = state.get("content")
    parts = [string(fields_of(part).get("text")) for part in content] if isinstance(content, list) else []
    return string(state.get("output")) or "\n".join(filter(None, parts))


_START = re.compile(rb'\{\s*"info":\s*\{\s*"id":\s*"(ses_\w+)"')
_FIELD = rb'"%s":\s*("(?:[^"\\]|\\.)*")'


def is_own(start: bytes) -> bool:
    """Return whether a file that begins so is a session of opencode."""
    return bool(_START.match(start))


def head_of(start: bytes, file: str) -> Head:
    """Return what the start of a session says of it; a subagent's names its parent's session."""
    match, about = _START.match(start), re.split(rb'"messages":\s*\[', start, maxsplit=1)[0]
    session_id, parent_id = match[1].decode() if match else None, _field("parentID", about)
    return Head(
        "opencode",
        session_id=parent_id or session_id,
        agent_id=session_id if parent_id else None,
        cwd=_field("directory", about),
        version=_field("version", about),
        is_from_program=parent_id is not None,
        is_document=True,
    )


def _field(name: str, start: bytes) -> str | None:
    match = re.search(_FIELD % name.encode(), start)
    try:
        return string(orjson.loads(match[1])) or None if match else None
    except orjson.JSONDecodeError:
        return None


def lines_of(document: bytes) -> bytes | None:
    """Return the messages of a session, one a line; None if it is no whole document."""
    try:
        session = orjson.loads(document)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(session, dict) or not isinstance(messages := session.get("messages"), list):
        return None
    infos = [fields_of(fields_of(message).get("info")) for message in messages]
    # A prompt names no folder: it was typed where it is answered.
    places = {string(info.get("parentID")): info["path"] for info in reversed(infos) if info.get("path")}
    for info in infos:
        if isinstance(info, dict) and (place := places.get(string(info.get("id")))):
            info.setdefault("path", place)
    # Not by orjson, which writes no integer that is larger than 64 bits.
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def folder_in(record: Record) -> str:
    """Return the folder in which a message was answered."""
    return string(fields_of(fields_of(record.get("info")).get("path")).get("cwd"))


def parsed_turns(record: Record, head: Head) -> list[ParsedTurn] | None:
    """Return the turns of one message; None for a message in a shape that this reader does not know."""
    info, parts = record.get("info"), record.get("parts")
    if not isinstance(info, Mapping) or not isinstance(parts, list):
        return None
    message_id = string(info.get("id"))
    kind = string(info.get("role")) or string(info.get("type"))
    if not message_id or not kind:
        return None
    said_at = _instant(fields_of(info.get("time")).get("created"))
    if kind != "assistant":
        envelope = head.envelope(said_at)
        return [
            ParsedTurn(envelope, utterance, message_id) for utterance in _from_user(kind, info, parts, head)
        ]
    envelope = head.envelope(said_at, message_id)
    return [
        ParsedTurn(envelope, utterance, message_id)
        for part in parts
        for utterance in _from_part(fields_of(part), message_id, is_summary=info.get("summary") is True)
    ]


def _from_user(kind: str, info: Record, parts: list[object], head: Head) -> list[Utterance]:
    """Return what a message says that is not the assistant's; what opencode itself put in is left out."""
    if kind == "shell":
        return asked("shell", string(info.get("command")), head)
    if kind == "compaction":
        return spoken("summary", string(info.get("summary")))
    if kind != "user":
        return []
    typed = [
        string(part.get("text"))
        for part in map(fields_of, parts)
        if part.get("type") == "text"
        and part.get("synthetic") is not True
        and part.get("ignored") is not True
    ]
    text = without_private("\n".join(typed) or string(info.get("text"))).strip()
    return [] if BARE_COMMAND.match(text) else asked("prompt", text, head)


def _from_part(part: Record, message_id: str, *, is_summary: bool) -> Iterator[Utterance]:
    kind, text = part.get("type"), string(part.get("text"))
    if kind == "text" and part.get("synthetic") is not True:
        yield from spoken("summary" if is_summary else "text", text)
    elif kind == "reasoning":
        yield from spoken("thinking", text)
    elif kind == "tool":
        yield from _from_tool(part, message_id)


def _from_tool(part: Record, message_id: str) -> Iterator[Utterance]:
    """Yield a call, and its result once it has ended: both stand in one part, which is written again."""
    state = fields_of(part.get("state"))
    name, given = call_of(string(part.get("tool")) or string(part.get("name")), state.get("input"))
    # The id is the provider's, who may count from 1 in each message.
    use_id = f"{message_id}:{string(part.get('callID')) or string(part.get('id'))}"
    yield call(name, use_id, given)
    ended = result_of(state)
    if ended is not None:
        text, status = ended
        yield tool_result(text, use_id, status, is_external=name.startswith(("Web", "mcp__")))


def _instant(milliseconds: object) -> str | None:
    """Return an instant given in milliseconds since 1970 as the reader takes it."""
    try:
        return datetime.fromtimestamp(float(str(milliseconds)) / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


ASSISTANT = Assistant(
    "opencode",
    "opencode",
    "XDG_DATA_HOME",
    ".local/share",
    ("opencode/opencode.db",),
    Adapter(is_own, head_of, parsed_turns, lines_of=lines_of, folder_in=folder_in),
)
