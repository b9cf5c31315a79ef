"""What a tool's result says: how the call ended, and the words a person gave through it."""

import re
from collections.abc import Mapping

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.records import (
    Record,
    Utterance,
    flat_text,
    is_from_sdk,
    is_sidechain,
    spoken,
    string,
)
from cortex.transforms.transcripts.turn_text import without_client_tags

_REJECTED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "[Request interrupted by user",
    "User rejected tool use",
)
# Calls that never ran, though no person refused them: no permission, stopped by a hook, or a sibling failed.
_CANCELLED = re.compile(
    r"Cancelled:|(?:Error: )?Sibling tool call errored|Claude requested permissions to|Permission to use|"
    r"This command requires approval|This Bash command contains multiple operations|PreToolUse:|"
    r"Hook PreToolUse|.{0,200}was blocked\. For security"
)
_ERROR_TAGS = re.compile(r"</?tool_use_error>")
_REASON = re.compile(
    r"(?:To tell you how to proceed, the user said:|"
    r"The user provided the following reason for the rejection:)(.*)",
    re.DOTALL,
)
_REASON_END = "\n\nNote: The user's next message may contain"
_APPROVAL_START = "User has approved your plan"
# The client's own words when a person wants to talk about the questions instead of answering them.
_CLARIFY_START = "The user wants to clarify these questions."
_CLARIFIED = re.compile(
    r'^- "(?P<question>.*?)"\n(?:  Answer: (?P<answer>.*?)(?:\n|\Z))?'
    r"(?:  User notes: (?P<notes>.*?)(?:\n|\Z))?",
    re.MULTILINE,
)
_TIMED_OUT = re.compile(r"timed out|did not (?:answer|respond)|no (?:answer|response)", re.IGNORECASE)
_NO_ANSWERS = frozenset(("", "no answer provided", "no answer", "no option selected", "timed out"))


def from_result(block: Record, record: Record) -> list[Utterance]:
    """Return the turn of a tool_result block and, where a person spoke through it, that person's words."""
    raw = without_private(flat_text(block.get("content")))
    detail = record.get("toolUseResult")
    use_id = string(block.get("tool_use_id")) or None
    status = _status(raw, block, record)
    text = _ERROR_TAGS.sub("", without_client_tags(raw)).strip()
    is_external = status == "ok" and _is_external(detail)
    result = Utterance("tool_result", text, None, use_id, None, status, is_external=is_external)
    # A program that drives the session answers, refuses and approves by itself.
    return [result] if is_from_sdk(record) else [result, *_persons_words(raw, status, use_id, record)]


def _persons_words(text: str, status: str, use_id: str | None, record: Record) -> list[Utterance]:
    detail = record.get("toolUseResult")
    if status == "rejected":
        return _rejection(text, use_id, record)
    if status != "ok" or not isinstance(detail, Mapping):
        return []
    if "answers" in detail and "questions" in detail:
        return spoken("choice", _answers(text, detail), use_id)
    if text.startswith(_APPROVAL_START) and not is_sidechain(record) and detail.get("isAgent") is not True:
        return spoken("plan", _approved_plan(text, detail), use_id)
    return []


def _status(text: str, block: Record, record: Record) -> str:
    """Return one of TOOL_STATUSES; a call that did not run to its end is cancelled, not failed."""
    detail = record.get("toolUseResult")
    if isinstance(detail, Mapping) and detail.get("interrupted") is True:
        return "cancelled"
    if block.get("is_error") is not True:
        return "ok"
    message = _ERROR_TAGS.sub("", text[:400]).strip()
    denial = string(record.get("toolDenialKind"))
    if message.startswith(_REJECTED) or denial.startswith("user"):
        return "rejected"
    return "cancelled" if denial or _CANCELLED.match(message) else "error"


def _is_external(detail: object) -> bool:
    """Tell a web page or an MCP server's answer by its shape; the tool's name is not on this line."""
    if not isinstance(detail, Mapping):
        return isinstance(detail, list)
    return ("url" in detail and "result" in detail) or ("query" in detail and "results" in detail)


def _rejection(text: str, use_id: str | None, record: Record) -> list[Utterance]:
    """Return a person's words in a refusal, without the client's around them."""
    match = _REASON.search(text)
    words = string(record.get("userFeedback")) or (match.group(1).partition(_REASON_END)[0] if match else "")
    words = words.strip()
    if not words.startswith(_CLARIFY_START):
        return spoken("rejection", words, use_id)
    answered = [
        _answer(m["question"], m["answer"] or "", m["notes"] or "") for m in _CLARIFIED.finditer(words)
    ]
    return spoken("choice", "\n".join(filter(None, answered)), use_id)


def _answers(text: str, detail: Record) -> str:
    """Return "question → answer" for each question that a person answered, one a line."""
    given, notes = detail.get("answers"), detail.get("annotations")
    if not isinstance(given, Mapping) or _TIMED_OUT.search(text.partition('"')[0]):
        return ""
    notes = notes if isinstance(notes, Mapping) else {}
    lines = []
    for question, answer in given.items():
        reply = ", ".join(map(string, answer)) if isinstance(answer, list) else string(answer)
        note = notes.get(question)
        lines.append(
            _answer(str(question), reply, string(note.get("notes")) if isinstance(note, Mapping) else "")
        )
    return "\n".join(filter(None, lines))


def _answer(question: str, reply: str, notes: str) -> str:
    reply = "" if reply.strip("( )").lower() in _NO_ANSWERS else reply.strip()
    answer = f"{reply} ({notes.strip()})" if reply and notes.strip() else reply or notes.strip()
    return f"{question} → {answer}" if answer else ""


def _approved_plan(text: str, detail: Record) -> str:
    """Return the plan that the result line carries, "" where only the call does."""
    _, mark, quoted = text.partition("## Approved Plan")
    return string(detail.get("plan")) or (quoted.partition(":\n")[2] if mark else "")
