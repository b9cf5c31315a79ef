"""Copilot CLI: an event of a session as turns, its tools by common names; see docs/other-assistants.md."""

import re
from collections.abc import Mapping

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.assistants.codex import patched
from cortex.transforms.transcripts.assistants.parsed_turn import (
    BARE_COMMAND,
    Adapter,
    Assistant,
    Head,
    ParsedTurn,
    asked,
    by_file_path,
    call,
    fields_of,
    object_in,
    tool_result,
)
from cortex.transforms.transcripts.records import Record, Utterance, flat_text, spoken, string

# -- Copilot CLI's tools under the names that the layers know, and how a call ended.

_NAMES = {
    "bash": "Bash",
    "shell": "Bash",
    "powershell": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "str_replace_editor": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "update_todo": "TodoWrite",
    "ask_user": "AskUserQuestion",
    "task": "Task",
}
_PATHS = ("path", "file_path")
_EXIT = re.compile(r"\n?<exited with exit code (-?\d{1,6})>\s*\Z")
_STEP = re.compile(r"[-*] \[([ xX~-])\] (\S.*)")
_STEP_STATUS = {" ": "pending", "x": "completed", "X": "completed"}
_REFUSALS = ("denied", "rejected")


def call_of(data: Record) -> tuple[str, Record]:
    """Return a call's tool and arguments under the names that the layers know; the name may be empty."""
    name, arguments = string(data.get("toolName")), data.get("arguments")
    server = string(data.get("mcpServerName"))
    if server:
        name = f"mcp__{server}__{string(data.get('mcpToolName')) or name}"
    if isinstance(arguments, str) and name == "apply_patch":
        return patched(arguments)
    given = arguments if isinstance(arguments, Mapping) else object_in(arguments) or {}
    name = _NAMES.get(name, name)
    if name == "TodoWrite":
        return name, {"todos": _steps(given.get("todos"))}
    return name, by_file_path(name, given, _PATHS)


def result_of(data: Record) -> tuple[str, str]:
    """
    Return what came back from a call and one of TOOL_STATUSES.

    >>> result_of({"success": True, "result": {"content": "1 failed\\n<exited with exit code 1>"}})
    ('Exit code 1\\n1 failed', 'error')
    >>> result_of({"success": False, "error": {"message": "The user said no", "code": "denied"}})
    ('The user said no', 'rejected')
    """
    error = data.get("error")
    if data.get("success") is False:
        fields = error if isinstance(error, Mapping) else {"message": error}
        text = string(fields.get("message")) or _text(data.get("result"))
        return text, "rejected" if string(fields.get("code")) in _REFUSALS else "error"
    text = _text(data.get("result"))
    exit_code = _EXIT.search(text[-80:])
    if exit_code is None:
        return text, "ok"
    body = text[: len(text) - len(exit_code[0])]
    return (body, "ok") if int(exit_code[1]) == 0 else (f"Exit code {exit_code[1]}\n{body}", "error")


def _text(result: object) -> str:
    return flat_text(result.get("content")) if isinstance(result, Mapping) else flat_text(result)


def _steps(todos: object) -> list[Record]:
    """Return a checklist in Markdown as steps."""
    lines = string(todos).splitlines()
    steps = (step for line in lines if (step := _STEP.match(line.strip())))
    return [{"content": step[2], "status": _STEP_STATUS.get(step[1], "in_progress")} for step in steps]


# The first event; its keys may come in another order, its values before the type are short.
_START = re.compile(
    rb'\{\s*(?:"(?:id|timestamp|parentId)":\s*(?:"[^"]{0,80}"|null),\s*){0,3}"type":\s*"session\.start"'
)

# Events about the program itself: most lines of a session, not worth parsing.
SILENT = (b'{"type":"assistant.turn_', b'{"type":"hook.', b'{"type":"permission.')


def is_own(start: bytes) -> bool:
    """Return whether a file that begins so is the event log of a session."""
    return bool(_START.match(start))


def head_of(start: bytes, file: str) -> Head:
    """Return what the first event says of the session; nothing if it was cut."""
    record = object_in(start.partition(b"\n")[0].decode("utf-8", "replace")) or {}
    meta = fields_of(record.get("data"))
    place = fields_of(meta.get("context"))
    return Head(
        "copilot",
        session_id=string(meta.get("sessionId")) or None,
        cwd=string(place.get("cwd")) or string(meta.get("cwd")) or None,
        git_branch=string(place.get("branch")) or None,
        version=string(meta.get("copilotVersion")) or None,
    )


def parsed_turns(record: Record, head: Head) -> list[ParsedTurn] | None:
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
    return [ParsedTurn({**envelope, "agentId": agent_id}, utterance, event_id) for utterance in utterances]


def folder_in(record: Record) -> str:
    """Return the folder in which a session begins, is resumed, or from here on goes on."""
    kind, data = string(record.get("type")), fields_of(record.get("data"))
    place = data if kind == "session.context_changed" else fields_of(data.get("context"))
    return string(place.get("cwd")) if kind.startswith("session.") else ""


def _from_user(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    # `content` is what the person typed; `transformedContent`, with what the program adds, is left alone.
    text = data.get("content")
    if not isinstance(text, str):
        return None
    if string(data.get("source")) not in ("", "user"):  # a skill's text, a program's reminder
        return []
    text = without_private(text).strip()
    if not text or BARE_COMMAND.match(text):
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
    return [tool_result(text, string(data.get("toolCallId")) or None, status)]


def _from_compaction(data: Record, head: Head, is_agent: bool) -> list[Utterance] | None:
    return spoken("summary", string(data.get("summaryContent")))


_READERS = {
    "user.message": _from_user,
    "assistant.message": _from_assistant,
    "tool.execution_start": _from_call,
    "tool.execution_complete": _from_result,
    "session.compaction_complete": _from_compaction,
}


ASSISTANT = Assistant(
    "copilot",
    "Copilot CLI",
    "COPILOT_HOME",
    ".copilot",
    ("session-state",),
    Adapter(is_own, head_of, parsed_turns, SILENT, folder_in=folder_in),
)
