"""Codex CLI's tools under the names that the layers know, and how a call ended, read from its output."""

import re
import shlex
from collections.abc import Mapping

import orjson

from cortex.transforms.transcripts.assistants.turned import object_in, plan
from cortex.transforms.transcripts.records import Record, flat_text, string

_SHELLS = frozenset(
    ("shell", "container.exec", "shell_command", "exec_command", "local_shell", "unified_exec")
)
_SHELL_FLAGS = frozenset(("-c", "-lc", "-ic", "-Command"))
_NAMES = {
    "read_file": "Read",
    "view_image": "Read",
    "list_dir": "LS",
    "grep_files": "Grep",
    "web_search": "WebSearch",
}

_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_PATCH = "*** Begin Patch"
# In code mode a call is a piece of JavaScript; a command in it is known where it stands as one string.
_SCRIPTED = re.compile(r"""exec_command\(\s*\{[^}]*?\bcmd["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")

_PREAMBLE = ("Command: ", "Chunk ID: ", "Exit code: ", "Wall time: ", "Script ")
_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)", re.MULTILINE)
_REJECTED = re.compile(
    r"(?:exec command |patch |apply_patch )?(?:was )?rejected by (?:the )?user", re.IGNORECASE
)
_CANCELLED = re.compile(r"aborted(?: by user)?\b|user interrupted", re.IGNORECASE)
_FAILED = re.compile(
    r"apply_patch verification failed|failed to parse function arguments|unsupported call|execution error"
    r"|failed in sandbox|exec_command failed|Script failed|err: |Error: |\w+ tool call error",
    re.IGNORECASE,
)


def call_of(item: Record) -> tuple[str, Record] | None:
    """Return the tool and the arguments of a call; None for an item that is not a call."""
    kind, name = string(item.get("type")), string(item.get("name"))
    if kind == "local_shell_call":
        action = item.get("action")
        return _shell(action.get("command"), action) if isinstance(action, Mapping) else None
    if kind == "web_search_call":
        action = item.get("action")
        return ("WebSearch", action) if isinstance(action, Mapping) else None
    if kind == "custom_tool_call":
        return _from_text(name, string(item.get("input")))
    return _from_function(name, item) if kind == "function_call" else None


def _from_function(name: str, item: Record) -> tuple[str, Record]:
    text = item.get("arguments")
    given = object_in(text) or {}
    if name in _SHELLS:
        return _shell(given.get("command", given.get("cmd")), given)
    if name == "apply_patch":
        return patched(string(given.get("input")) or string(given.get("patch")) or string(text))
    if name == "update_plan":
        return "TodoWrite", plan(given.get("plan"), "step")
    if name == "request_user_input":
        return "AskUserQuestion", given
    if name in _NAMES:
        path = given.get("path") or given.get("file_path") or given.get("dir_path")
        return _NAMES[name], {"file_path": path} if path and _NAMES[name] == "Read" else given
    return _server_name(name, string(item.get("namespace"))), given


def _from_text(name: str, text: str) -> tuple[str, Record]:
    """Return a call whose argument is not JSON: a patch, or a script that calls other tools."""
    if name == "apply_patch":
        return patched(text)
    scripted = _SCRIPTED.findall(text) if name == "exec" else []
    if len(scripted) == 1:
        return "Bash", {"command": _string_in(scripted[0])}
    return name or "custom", {"input": text}


def _string_in(literal: str) -> str:
    try:
        return string(orjson.loads(literal))
    except orjson.JSONDecodeError:
        return literal[1:-1].replace("\\'", "'").replace('\\"', '"')


def _server_name(name: str, namespace: str) -> str:
    """Return the name of an MCP server's tool, marked so that its answers count as strangers' words."""
    whole = f"{namespace.rstrip('_')}__{name}" if namespace else name
    return whole if whole.startswith("mcp__") or "__" not in whole else f"mcp__{whole}"


def _shell(command: object, given: Record) -> tuple[str, Record]:
    parts = [part for part in command if isinstance(part, str)] if isinstance(command, list) else []
    if len(parts) == 3 and parts[1] in _SHELL_FLAGS:
        text = parts[2]
    elif parts and parts[0] == "apply_patch":
        return patched("\n".join(parts[1:]))
    else:
        text = shlex.join(parts) if parts else string(command)
    if _PATCH in text and "apply_patch" in text.partition(_PATCH)[0]:
        return patched(text)
    place = string(given.get("workdir")) or string(given.get("working_directory"))
    return "Bash", {"command": text, "workdir": place} if place else {"command": text}


def patched(patch: str) -> tuple[str, Record]:
    """
    Return a patch as an edit of its file, or of several.

    >>> patched("*** Begin Patch\\n*** Add File: a.py\\n+x\\n*** End Patch")[0]
    'Write'
    """
    done = _PATCHED.findall(patch)
    paths = list(dict.fromkeys(path for _, path in done))
    if len(paths) > 1:
        return "MultiEdit", {"file_path": paths[0], "paths": paths, "patch": patch}
    given = {"file_path": paths[0], "patch": patch} if paths else {"patch": patch}
    return "Write" if done and done[0][0] == "Add" else "Edit", given


def result_of(output: object) -> tuple[str, str]:
    """
    Return what came back from a call and one of TOOL_STATUSES.

    >>> result_of("Exit code: 1\\nWall time: 0.2 seconds\\nOutput:\\n1 failed")
    ('Exit code 1\\n1 failed', 'error')
    """
    if isinstance(output, Mapping):
        text, status = result_of(output.get("content") or output.get("output"))
        return text, "error" if output.get("success") is False and status == "ok" else status
    text = flat_text(output)
    fields = object_in(text)
    if fields is not None and isinstance(fields.get("output"), str):
        meta = fields.get("metadata")
        code = meta.get("exit_code") if isinstance(meta, Mapping) else None
        return _ended(string(fields["output"]), code if isinstance(code, int) else None)
    if not text.startswith(_PREAMBLE):
        return _ended(text, None)
    preamble, _, body = text.partition("Output:\n")
    exit_code = _EXIT_CODE.search(preamble)
    return _ended(body if _ else text, int(exit_code[1]) if exit_code else None)


def _ended(text: str, code: int | None) -> tuple[str, str]:
    if code is not None:
        return (f"Exit code {code}\n{text}", "error") if code else (text, "ok")
    start = text[:300].lstrip()
    if _REJECTED.match(start):
        return text, "rejected"
    if _CANCELLED.match(start):
        return text, "cancelled"
    return text, "error" if _FAILED.match(start) else "ok"
