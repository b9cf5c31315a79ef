"""Gemini CLI: a message of a chat file as turns, its tools by common names; see docs/other-assistants.md."""

import json
import re
from collections.abc import Iterator, Mapping

import orjson

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.assistants.parsed_turn import (
    Adapter,
    Assistant,
    Head,
    ParsedTurn,
    asked,
    by_file_path,
    call,
    fields_of,
    object_in,
    plan,
    tool_result,
)
from cortex.transforms.transcripts.records import Record, Utterance, spoken, string

# -- Gemini CLI's tools under the names that the layers know, and how a call ended.

_NAMES = {
    "run_shell_command": "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "replace": "Edit",
    "edit_file": "Edit",
    "write_todos": "TodoWrite",
    "list_directory": "LS",
    "glob": "Glob",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "google_web_search": "WebSearch",
    "web_fetch": "WebFetch",
    "ask_user": "AskUserQuestion",
}
_PATHS = ("file_path", "absolute_path", "path")
_EXIT_CODE = re.compile(r"^Exit Code: (\d+)\s*$", re.MULTILINE)
_OUTPUT = re.compile(
    r"^(?:Output|Stdout): (.*?)(?=^(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): |\Z)",
    re.MULTILINE | re.DOTALL,
)
_REFUSED = re.compile(r"User (?:did not allow|denied|rejected|cancelled)", re.IGNORECASE)


def named(name: str) -> str:
    """
    Return a tool by the name that the layers know.

    >>> named("replace"), named("mcp_tides_levels"), named("tides__levels")
    ('Edit', 'mcp__tides_levels', 'mcp__tides__levels')
    """
    if name in _NAMES or name.startswith("mcp__"):
        return _NAMES.get(name, name)
    if name.startswith("mcp_"):
        return f"mcp__{name[4:]}"
    return f"mcp__{name}" if "__" in name else name


def given_to(name: str, arguments: object) -> Record:
    """Return a call's arguments under the names that the layers know."""
    given = fields_of(arguments)
    if name == "TodoWrite":
        return plan(given.get("todos"), "description")
    return by_file_path(name, given, _PATHS)


def result_of(done: Record, name: str) -> tuple[str, str] | None:
    """Return what came back and one of TOOL_STATUSES; None while the call runs."""
    status = string(done.get("status"))
    if status not in ("success", "error", "cancelled"):
        return None
    text = _text(done.get("result"))
    if not text and isinstance(done.get("resultDisplay"), str):
        text = string(done["resultDisplay"])
    if status == "cancelled":
        return text, "rejected" if _REFUSED.search(text) else "cancelled"
    return _shell_result(text, status) if name == "Bash" else (text, "ok" if status == "success" else "error")


def _shell_result(text: str, status: str) -> tuple[str, str]:
    """Return a command's output; the program calls it a success whatever its exit code."""
    exit_code, body = _EXIT_CODE.search(text), _OUTPUT.search(text)
    output = body[1].rstrip() if body else text
    if exit_code and exit_code[1] != "0":
        return f"Exit code {exit_code[1]}\n{output}", "error"
    return output, "ok" if status == "success" else "error"


def _text(result: object) -> str:
    """Return a result's text: parts of text, and function responses with their output or error."""
    if isinstance(result, str):
        return result
    parts = result if isinstance(result, list) else [result]
    return "\n".join(filter(None, (_part_text(part) for part in parts)))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    response = fields_of(part.get("functionResponse")).get("response")
    if isinstance(response, Mapping):
        return string(response.get("output")) or string(response.get("error"))
    return string(part.get("text"))


def choices_of(given: Record, text: str) -> str:
    """Return "question → answer" for each question that a person answered, one a line."""
    fields = object_in(text) or {}
    answers, questions = fields.get("answers"), given.get("questions")
    if not isinstance(answers, Mapping) or not isinstance(questions, list):
        return ""
    asked = [string(each.get("question")) if isinstance(each, Mapping) else "" for each in questions]
    lines = [
        f"{question.strip()} → {answer.strip()}"
        for at, question in enumerate(asked)
        if question and (answer := string(answers.get(str(at)))).strip()
    ]
    return "\n".join(lines)


# Both keys in the first object of the file, before any message.
_SESSION = re.compile(rb'"sessionId":\s*"([^"]+)"')
_PROJECT = re.compile(rb'"projectHash":\s*"([^"]+)"')
_MESSAGES = re.compile(rb'"messages":\s*\[')

# Lines that only repeat or change what the file says of itself.
SILENT = (b'{"$set":',)

# Text that the program puts into a person's message.
_PROGRAMS_OWN = (
    "This is the Gemini CLI. We are setting up the context",
    "<session_context",
    "System: ",
    "Got it. Thanks for the context",
)
_SUMMARY = "<state_snapshot"
_SHELL = re.compile(r"I ran the following shell command:\s*```\w*\n(.*?)\n```", re.DOTALL)
_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
_HOOK, _HOOK_END = "<hook_context>", "</hook_context>"
_BARE_COMMAND = re.compile(r"[/?][\w:-]*\Z")


def is_own(start: bytes) -> bool:
    """Return whether a file that begins so is a chat of Gemini CLI, of lines or one document."""
    first = start.partition(b"\n")[0] if start.startswith(b'{"') else start
    match = _MESSAGES.search(first)
    before = first[: match.start()] if match else first
    return start.startswith(b"{") and bool(_SESSION.search(before) and _PROJECT.search(before))


def head_of(start: bytes, file: str) -> Head:
    """Return what the start of a chat says of it; a subagent's folder is named by its parent's session."""
    first_line = start.partition(b"\n")[0].strip()
    is_document = bool(_MESSAGES.search(first_line)) or not first_line.endswith(b"}")
    session, project = _SESSION.search(start), _PROJECT.search(start)
    session_id = session[1].decode("utf-8", "replace") if session else None
    fields = object_in(first_line.decode("utf-8", "replace")) or {}
    *_, above, folder, _ = ["", "", *file.replace("\\", "/").split("/")]
    is_inside = above == "chats"
    is_agent = is_inside or fields.get("kind") == "subagent"
    return Head(
        "gemini",
        session_id=folder if is_inside else session_id,
        agent_id=session_id if is_agent else None,
        is_from_program=is_agent,
        project_hash=project[1].decode("utf-8", "replace") if project else None,
        is_document=is_document,
    )


def lines_of(document: bytes) -> bytes | None:
    """
    Return the messages of a chat that is one JSON object, one a line; None if it is none (yet).

    A message keeps its place when the file is rewritten: it is the number of its line.
    """
    chat = _parsed(document)
    if not isinstance(chat, dict) or not isinstance(messages := chat.get("messages"), list):
        return None
    kind = {"sessionKind": chat.get("kind")}
    whole = [{**each, **kind} if isinstance(each, dict) else each for each in messages]
    return b"".join(_line_of(each) + b"\n" for each in whole)


def _line_of(message: object) -> bytes:
    """Return a message as one line; one nested too deep to be written stands as a line that is set aside."""
    try:
        return json.dumps(message).encode()
    except RecursionError:
        return b'"nested too deep"'


def _parsed(document: bytes) -> object:
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(document)  # halves of surrogate pairs are taken here; the reader replaces them
    except (ValueError, RecursionError):
        return None


def parsed_turns(record: Record, head: Head) -> list[ParsedTurn] | None:
    """Return the turns of one message; None for a message in a shape that this reader does not know."""
    kind = record.get("type")
    if kind not in ("user", "gemini"):
        return []
    message_id = string(record.get("id"))
    if not message_id:
        return None
    said_at = record.get("timestamp")
    is_agent = record.get("sessionKind") == "subagent"
    if kind == "user":
        return [
            ParsedTurn(
                head.envelope(said_at),
                utterance._replace(kind="program") if is_agent else utterance,
                message_id,
            )
            for utterance in _from_user(record, head)
        ]
    envelope = head.envelope(said_at, message_id)
    words = [*_thoughts(record.get("thoughts")), *spoken("text", parts_text(record.get("content")))]
    return [ParsedTurn(envelope, utterance, message_id) for utterance in words] + [
        ParsedTurn(head.envelope(at or said_at, message_id), utterance, message_id)
        for at, utterance in _calls(record.get("toolCalls"), message_id)
    ]


def parts_text(content: object) -> str:
    """Return the text of a message's parts; thoughts, files and calls among them leave nothing."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [
        part if isinstance(part, str) else string(part.get("text"))
        for part in parts
        if isinstance(part, str) or (isinstance(part, Mapping) and part.get("thought") is not True)
    ]
    return "\n".join(filter(None, texts))


def _thoughts(thoughts: object) -> list[Utterance]:
    listed = thoughts if isinstance(thoughts, list) else []
    thoughts = [
        f"{string(each.get('subject'))}: {string(each.get('description'))}".strip(": ")
        for each in listed
        if isinstance(each, Mapping)
    ]
    return spoken("thinking", "\n".join(thoughts))


def _from_user(record: Record, head: Head) -> list[Utterance]:
    # What the person saw themselves typing comes without the files that @path put in.
    text = parts_text(record.get("displayContent")) or parts_text(record.get("content"))
    text = _without(_without(without_private(text), _FILES, _FILES_END), _HOOK, _HOOK_END).strip()
    if _SUMMARY in text[:200]:
        return spoken("summary", text)
    if text.startswith(_PROGRAMS_OWN) or _BARE_COMMAND.match(text):
        return []
    shell = _SHELL.match(text)
    return asked("shell", shell[1], head) if shell else asked("prompt", text, head)


def _without(text: str, start: str, end: str) -> str:
    """Return a text without what lies between two marks, up to its end if the second is missing."""
    before, mark, rest = text.partition(start)
    return before + rest.partition(end)[2] if mark else text


def _calls(calls: object, message_id: str) -> Iterator[tuple[object, Utterance]]:
    """Yield each call, and its result once it has ended: both stand in one record, which is written again."""
    for at, each in enumerate(calls if isinstance(calls, list) else []):
        if not isinstance(each, Mapping):
            continue
        # The program's ids are a tool's name and a number: unique only within the message.
        use_id = f"{message_id}:{string(each.get('id')) or at}"
        name = named(string(each.get("name")))
        given = given_to(name, each.get("args"))
        yield each.get("timestamp"), call(name, use_id, given)
        ended = result_of(each, name)
        if ended is not None:
            is_external = name in ("WebSearch", "WebFetch") or name.startswith("mcp__")
            returned = tool_result(ended[0], use_id, ended[1], is_external=is_external)
            yield each.get("timestamp"), returned
            if name == "AskUserQuestion" and returned.tool_status == "ok":
                for utterance in spoken("choice", choices_of(given, returned.text), use_id):
                    yield each.get("timestamp"), utterance


# Beside chats are checkpoints, logs.json and tool outputs, which are not transcripts.
ASSISTANT = Assistant(
    "gemini",
    "Gemini CLI",
    "GEMINI_CLI_HOME",
    "",
    (".gemini/tmp",),
    Adapter(is_own, head_of, parsed_turns, SILENT, lines_of=lines_of),
    re.compile(r"chats/session-.*\.json", re.DOTALL),
)
