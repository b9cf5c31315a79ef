"""Codex CLI: a line of a rollout file as turns, its tools by common names; see docs/other-assistants.md."""

import re
import shlex
from collections.abc import Mapping

import orjson

from cortex.hooks.prose.plain import has_private_tag, without_private
from cortex.transforms.transcripts.assistants.parsed_turn import (
    BARE_COMMAND,
    Adapter,
    Assistant,
    Head,
    ParsedTurn,
    asked,
    call,
    fields_of,
    object_in,
    plan,
    tool_result,
)
from cortex.transforms.transcripts.records import Record, Utterance, flat_text, inside_tag, spoken, string

# -- Codex CLI's tools under the names that the layers know, and how a call ended, read from its output.

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
    if kind in ("local_shell_call", "web_search_call"):
        action = item.get("action")
        if not isinstance(action, Mapping):
            return None
        return _shell(action.get("command"), action) if kind == "local_shell_call" else ("WebSearch", action)
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
        code = fields_of(fields.get("metadata")).get("exit_code")
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


# The first line since September 2025 (0.3x); before, a bare object that has no type.
_META = re.compile(rb'\{\s*(?:"[a-z_]+":\s*(?:"[^"]*"|\d+),\s*){0,3}"type":\s*"session_meta"')
_BARE_META = re.compile(
    rb'\{"id":\s*"[^"]+",\s*"timestamp":\s*"[^"]+",\s*"(?:instructions|cwd|originator|git)":'
)

# Lines that say nothing, or what a response_item says as well: most of a rollout, not worth parsing.
SILENT = (b'{"record_type":',)
_SILENT_TYPES = frozenset(("session_meta", "turn_context", "event_msg", "world_state"))

# Two messages of this many characters, word for word, are one: a fork writes its parent's messages again,
# with other times and without ids. Shorter ones ("go on") are said twice in earnest.
COPY_CHARS = 80

# Text that the program puts into a person's message.
_PROGRAMS_OWN = (
    "# AGENTS.md instructions",
    "<environment_context",
    "<user_instructions",
    "<permissions",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Warning: apply_patch was requested via",
    "Warning: The maximum number of unified exec",
)
_SUMMARY = ("Another language model started to solve this problem", "<compaction_summary")
_SHELL = "<user_shell_command>"
_REQUEST = "## My request for Codex:"
_OPENING = re.compile(r"<([A-Za-z][\w:-]*)[^>]*>")


def is_own(start: bytes) -> bool:
    """Return whether a file that begins so is a rollout."""
    return bool(_META.match(start) or _BARE_META.match(start)) or start.startswith(SILENT)


def head_of(start: bytes, file: str) -> Head:
    """Return what the first line says of the session; nothing if it was cut."""
    first_line = start.partition(b"\n")[0]
    record = object_in(first_line.decode("utf-8", "replace")) or {}
    payload = record.get("payload")
    meta = payload if isinstance(payload, Mapping) else record
    own_id = string(meta.get("id")) or None
    parent_id = _parent_of(meta)
    is_agent = parent_id is not None or _is_subagent(meta)
    return Head(
        "codex",
        session_id=parent_id or own_id,
        agent_id=own_id if is_agent else None,
        cwd=string(meta.get("cwd")) or None,
        git_branch=string(fields_of(meta.get("git")).get("branch")) or None,
        version=string(meta.get("cli_version")) or None,
        is_from_program=is_agent or meta.get("source") in ("exec", "mcp"),
    )


def _is_subagent(meta: Record) -> bool:
    return meta.get("thread_source") == "subagent" or "subagent" in fields_of(meta.get("source"))


def _parent_of(meta: Record) -> str | None:
    """Return the session that started this one as its subagent."""
    parent = string(meta.get("parent_thread_id"))
    if parent:
        return parent
    value: object = meta.get("source")
    for key in ("subagent", "thread_spawn", "parent_thread_id"):
        value = fields_of(value).get(key)
    return string(value) or None


def parsed_turns(record: Record, head: Head) -> list[ParsedTurn] | None:
    """Return the turns of one line; None for a response item in a shape that this reader does not know."""
    kind = string(record.get("type"))
    if kind in _SILENT_TYPES or "record_type" in record:
        return []
    payload = record.get("payload")
    if kind == "compacted":
        summary = string(fields_of(payload).get("message"))
        return _with_envelope(spoken("summary", summary), record, {}, head)
    item = payload if kind == "response_item" else record if "payload" not in record else None
    if kind == "response_item" and not isinstance(item, Mapping):
        return None
    if not isinstance(item, Mapping):
        return []
    utterances = _utterances(item, head)
    return None if utterances is None else _with_envelope(utterances, record, item, head)


def folder_in(record: Record) -> str:
    """Return the folder of a turn's context, or of the environment that the model is named."""
    payload = fields_of(record.get("payload", record))
    if record.get("type") == "turn_context":
        return string(payload.get("cwd"))
    content = payload.get("content") if payload.get("role") == "user" else None
    texts = [_text_of(block) for block in content] if isinstance(content, list) else []
    named = [inside_tag(text, "cwd").strip() for text in texts if text.startswith("<environment_context")]
    return named[-1] if named else ""


def _with_envelope(utterances: list[Utterance], record: Record, item: Record, head: Head) -> list[ParsedTurn]:
    said_at = record.get("timestamp")
    is_answer = item.get("role") == "assistant" or item.get("type") == "reasoning"
    message_id = string(item.get("id")) or None if is_answer else None
    envelope = head.envelope(said_at, message_id)
    return [
        ParsedTurn(envelope, utterance, _identity(utterance, message_id, said_at)) for utterance in utterances
    ]


def _identity(utterance: Utterance, message_id: str | None, said_at: object) -> str | None:
    if message_id:
        return message_id
    return "" if len(utterance.text) >= COPY_CHARS else string(said_at) or None


def _utterances(item: Record, head: Head) -> list[Utterance] | None:
    kind = string(item.get("type"))
    if kind == "message":
        return _from_message(item, head)
    if kind == "reasoning":
        return spoken(
            "thinking", "\n".join(filter(None, map(flat_text, (item.get("summary"), item.get("content")))))
        )
    if kind.endswith("_call_output"):
        text, status = result_of(item.get("output"))
        use_id = string(item.get("call_id")) or None
        return [tool_result(text, use_id, status)]
    name_and_input = call_of(item)
    if not name_and_input:
        return []
    name, given = name_and_input
    return [call(name, string(item.get("call_id")) or None, given)]


def _from_message(item: Record, head: Head) -> list[Utterance] | None:
    content = item.get("content")
    blocks = [content] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return None
    texts = [text for block in blocks if (text := _text_of(block))]
    role = item.get("role")
    if role == "assistant":
        return spoken("text", "\n".join(texts))
    return _from_user(texts, head) if role == "user" else []  # the others are developer and system


def _text_of(block: object) -> str:
    return block if isinstance(block, str) else string(fields_of(block).get("text"))


def _from_user(texts: list[str], head: Head) -> list[Utterance]:
    """Classify each block by itself; what a person typed in several is one prompt."""
    if len(texts) > 1 and any(map(has_private_tag, texts)):
        texts = ["\n".join(texts)]  # a private passage may reach over several blocks
    typed = [utterance for text in texts for utterance in _from_typed(without_private(text).strip(), head)]
    prompts = [utterance.text for utterance in typed if utterance.kind in ("prompt", "program")]
    others = [utterance for utterance in typed if utterance.kind not in ("prompt", "program")]
    return others + asked("prompt", "\n".join(prompts), head)


def _from_typed(text: str, head: Head) -> list[Utterance]:
    if text.startswith(_SHELL):
        return asked("shell", inside_tag(text, "command"), head)
    if text.startswith(_SUMMARY):
        return spoken("summary", text)
    if _REQUEST in text:  # an editor tells its open files before
        text = text.partition(_REQUEST)[2].strip()
    if text.startswith(_PROGRAMS_OWN) or _is_one_element(text) or BARE_COMMAND.match(text):
        return []
    return asked("prompt", text, head)


def _is_one_element(text: str) -> bool:
    """Return whether a text is a single tagged element: so the program marks all that it puts in."""
    opening = _OPENING.match(text)
    if opening is None:
        return text in ("</image>",)
    return opening.end() == len(text) or text.endswith(f"</{opening[1]}>")


ASSISTANT = Assistant(
    "codex",
    "Codex CLI",
    "CODEX_HOME",
    ".codex",
    ("sessions", "archived_sessions"),
    Adapter(is_own, head_of, parsed_turns, SILENT, folder_in=folder_in),
    re.compile(r".*/rollout-.*\.jsonl\.zst", re.DOTALL),
)
