"""Copilot CLI's tools under the names that the layers know, and how a call ended."""

import re
from collections.abc import Mapping

from cortex.transforms.transcripts.assistants.codex_tools import patched
from cortex.transforms.transcripts.assistants.turned import object_in
from cortex.transforms.transcripts.records import Record, flat_text, string

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
    path = next((given[key] for key in _PATHS if string(given.get(key))), None)
    if name in ("Read", "Write", "Edit") and path:
        return name, {"file_path": path, **{key: value for key, value in given.items() if key not in _PATHS}}
    return name, given


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
