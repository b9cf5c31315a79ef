"""Copilot CLI: an event of a session as turns. What is known of the format: docs/other-assistants.md."""

import re
from collections.abc import Mapping

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.assistants.copilot_tools import call_of, result_of
from cortex.transforms.transcripts.assistants.turned import (
    Adapter,
    Assistant,
    Head,
    Turned,
    asked,
    call,
    object_in,
)
from cortex.transforms.transcripts.records import Record, Utterance, spoken, string

# The first event; its keys may come in another order, its values before the type are short.
_START = re.compile(
    rb'\{\s*(?:"(?:id|timestamp|parentId)":\s*(?:"[^"]{0,80}"|null),\s*){0,3}"type":\s*"session\.start"'
)

# Events about the program itself: most lines of a session, not worth parsing.
SILENT = (b'{"type":"assistant.turn_', b'{"type":"hook.', b'{"type":"permission.')

_BARE_COMMAND = re.compile(r"/[\w:-]+\Z")


def is_own(start: bytes) -> bool:
    """Return whether a file that begins so is the event log of a session."""
    return bool(_START.match(start))


def head_of(start: bytes, file: str) -> Head:
    """Return what the first event says of the session; nothing where it was cut."""
    record = object_in(start.partition(b"\n")[0].decode("utf-8", "replace")) or {}
    meta = _object(record.get("data"))
    place = _object(meta.get("context"))
    return Head(
        "copilot",
        session_id=string(meta.get("sessionId")) or None,
        cwd=string(place.get("cwd")) or string(meta.get("cwd")) or None,
        git_branch=string(place.get("branch")) or None,
        version=string(meta.get("copilotVersion")) or None,
    )


def turned(record: Record, head: Head) -> list[Turned] | None:
    """Return the turns of one event; None for a message in a shape that this reader does not know."""
    kind = string(record.get("type"))
    if kind not in _READERS or record.get("ephemeral") is True:
        return []
    data = record.get("data")
    if not isinstance(data, Mapping):
        return None
    agent_id = string(record.get("agentId")) or string(data.get("parentToolCallId")) or None
    utterances = _READERS[kind](data, head, agent_id is not None)
    if utterances is None:
        return None
    event_id = string(record.get("id")) or None
    is_answer = kind in ("assistant.message", "tool.execution_start")
    envelope = head.envelope(record.get("timestamp"), event_id if is_answer else None)
    return [Turned({**envelope, "agentId": agent_id}, utterance, event_id) for utterance in utterances]


def _from_user(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    # `content` is what the person typed; `transformedContent`, with what the program adds, is left alone.
    text = data.get("content")
    if not isinstance(text, str):
        return None
    if string(data.get("source")) not in ("", "user"):  # a skill's text, a program's reminder
        return []
    text = without_private(text).strip()
    if not text or _BARE_COMMAND.match(text):
        return []
    return spoken("program", text) if is_agent else asked("prompt", text, head)


def _from_assistant(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    text = data.get("content")
    if text is not None and not isinstance(text, str):
        return None
    return [*spoken("thinking", string(data.get("reasoningText"))), *spoken("text", text or "")]


def _from_call(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    name, given = call_of(data)
    return [call(name, string(data.get("toolCallId")) or None, given)] if name else []


def _from_result(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    text, status = result_of(data)
    use_id = string(data.get("toolCallId")) or None
    return [Utterance("tool_result", without_private(text).strip(), None, use_id, None, status)]


def _from_compaction(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    return spoken("summary", string(data.get("summaryContent")))


_READERS = {
    "user.message": _from_user,
    "assistant.message": _from_assistant,
    "tool.execution_start": _from_call,
    "tool.execution_complete": _from_result,
    "session.compaction_complete": _from_compaction,
}


def _object(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}


ASSISTANT = Assistant(
    "copilot",
    "Copilot CLI",
    "COPILOT_HOME",
    ".copilot",
    ("session-state",),
    Adapter(is_own, head_of, turned, SILENT),
)
