"""Gemini CLI's tools under the names that the layers know, and how a call ended."""

import re
from collections.abc import Mapping

from cortex.transforms.transcripts.assistants.turned import object_in, plan
from cortex.transforms.transcripts.records import Record, string

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
    given = arguments if isinstance(arguments, Mapping) else {}
    if name == "TodoWrite":
        return plan(given.get("todos"), "description")
    path = next((given[key] for key in _PATHS if string(given.get(key))), None)
    if name in ("Read", "Write", "Edit") and path:
        return {"file_path": path, **{key: value for key, value in given.items() if key not in _PATHS}}
    return given


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
    answered = part.get("functionResponse")
    response = answered.get("response") if isinstance(answered, Mapping) else None
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
