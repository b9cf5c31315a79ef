"""What one record of a transcript says, and who says it."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from cortex.transforms.turn_text import without_client_tags, without_private

Record = Mapping[str, object]


class Said(NamedTuple):
    """One turn as the client wrote it, not yet redacted or cut."""

    kind: str
    text: str
    tool_name: str | None = None
    tool_use_id: str | None = None
    tool_input: Record | None = None
    tool_status: str | None = None
    is_external: bool = False
    is_queued: bool = False


# Text that the client wrote into a user record without marking it as its own.
_CLIENT_TEXT = (
    "[Request interrupted by user",
    "<local-command-",
    "<bash-stdout",
    "<bash-stderr",
    "<ide_",
    "Caveat: The messages below were generated",
    "Operation stopped by hook",
    "Stop hook feedback:",
    "Unknown slash command:",
    "Unknown skill:",
    "/compact",
)
_PROGRAM_TEXT = ("<task-notification", "<teammate-message")
_SUMMARY_START = "This session is being continued from a previous conversation"
_PLAN_START = "Implement the following plan:"
_PLAN_END = "\n\nIf you need specific details from before exiting plan mode"
_APPROVAL_START = "User has approved your plan"
_RECAP_END = "(disable recaps in /config)"

_COMMAND = re.compile(r"<command-(?:name|message|args)>")
_COMMAND_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_COMMAND_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL = re.compile(r"<bash-input>(.*?)(?:</bash-input>|\Z)", re.DOTALL)
_BARE_COMMAND = re.compile(r"/[\w:-]+\Z")
_PERSONS_NOTE = re.compile(r"<user-memory-input>(.*?)(?:</user-memory-input>|\Z)", re.DOTALL)

_REJECTED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "[Request interrupted by user",
)
# Calls that never ran, though no person refused them.
_CANCELLED = (
    "Cancelled:",
    "Sibling tool call errored",
    "Error: Sibling tool call errored",
    "Claude requested permissions to",
    "Permission to use",
)
_REASON = re.compile(
    r"(?:To tell you how to proceed, the user said:|"
    r"The user provided the following reason for the rejection:)(.*)",
    re.DOTALL,
)
_REASON_END = "\n\nNote: The user's next message may contain"
# The client's own words when a person wants to talk about the questions instead of answering them.
_CLARIFY_START = "The user wants to clarify these questions."
_NO_ANSWER = re.compile(r"timed out|did not (?:answer|respond)|no (?:answer|response)", re.IGNORECASE)
_ERROR_TAGS = re.compile(r"</?tool_use_error>")


def said_in(record: Record, *, in_agent_file: bool) -> list[Said] | None:
    """
    Return what a record says, in order; nothing for records that carry no conversation.

    `in_agent_file` is true for the transcript of a subagent, where no person speaks. None means a
    conversation record in a shape that this reader does not know.
    """
    kind = record.get("type")
    if kind == "assistant":
        return _from_assistant(record)
    if kind == "user":
        return _from_user(record, in_agent_file)
    if kind == "attachment":
        return _from_attachment(record, in_agent_file)
    if kind == "system":
        return _from_system(record, in_agent_file)
    return []


def is_sidechain(record: Record) -> bool:
    """Return whether a record belongs to a subagent's conversation."""
    return record.get("isSidechain") is True


def _from_assistant(record: Record) -> list[Said] | None:
    message = record.get("message")
    blocks = _blocks(message)
    if blocks is None or not isinstance(message, Mapping):
        return None
    if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
        return []
    return [said for block in blocks for said in _from_answer_block(block)]


def _from_answer_block(block: Record) -> list[Said]:
    kind = block.get("type")
    if kind in ("text", "thinking"):
        text = without_private(_string(block.get(str(kind))))
        return [Said(str(kind), text)] if text.strip() else []
    if kind in ("tool_use", "server_tool_use"):
        given = block.get("input")
        tool_input = given if isinstance(given, Mapping) else {}
        name = _string(block.get("name")) or None
        return [Said("tool_call", "", name, _string(block.get("id")) or None, tool_input)]
    if isinstance(kind, str) and kind.endswith("_tool_result"):
        is_web = kind.startswith("web_")
        text = without_private(_result_text(block.get("content")))
        use_id = _string(block.get("tool_use_id")) or None
        return [Said("tool_result", text, None, use_id, None, "ok", is_external=is_web)]
    return []


def _from_user(record: Record, in_agent_file: bool) -> list[Said] | None:
    blocks = _blocks(record.get("message"))
    if blocks is None:
        return None
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if results:
        return [said for block in results for said in _from_result(block, record)]
    texts = [_string(block.get("text")) for block in blocks if block.get("type") == "text"]
    if record.get("isCompactSummary") is True:
        return _spoken("summary", "\n".join(texts))
    if record.get("isMeta") is True:
        return []
    return _from_texts(texts, record, in_agent_file)


def _from_texts(texts: list[str], record: Record, in_agent_file: bool) -> list[Said]:
    """Classify each text block by itself; what a person typed in several blocks is one prompt."""
    if len(texts) > 1 and any("private>" in text.lower() for text in texts):
        texts = ["\n".join(texts)]  # a private passage may reach over several blocks
    found = [said for text in texts for said in _from_typed(without_private(text), record, in_agent_file)]
    prompts = [said.text for said in found if said.kind == "prompt"]
    others = [said for said in found if said.kind != "prompt"]
    return others + ([Said("prompt", "\n".join(prompts))] if prompts else [])


def _from_typed(text: str, record: Record, in_agent_file: bool) -> list[Said]:
    text = without_client_tags(text).strip()
    if text.startswith(_SUMMARY_START):
        return [Said("summary", text)]
    if not text or text.startswith(_CLIENT_TEXT):
        return []
    said = _person_said(text, record)
    if _is_from_program(record, in_agent_file) or text.startswith(_PROGRAM_TEXT):
        return [said._replace(kind="program")] if said else []
    return [said] if said else []


def _person_said(text: str, record: Record) -> Said | None:
    """Return a prompt, slash command, shell command or plan hand-over; None where no words are left."""
    if _COMMAND.match(text):
        name, given = _COMMAND_NAME.search(text), _COMMAND_ARGS.search(text)
        arguments = given.group(1).strip() if given else ""
        return Said("command", arguments, name.group(1).strip() if name else None) if arguments else None
    if shell := _SHELL.match(text):
        return Said("shell", shell.group(1).strip()) if shell.group(1).strip() else None
    if note := _PERSONS_NOTE.match(text):
        return Said("prompt", note.group(1).strip()) if note.group(1).strip() else None
    if text.startswith(_PLAN_START):
        plan = _string(record.get("planContent")) or text[len(_PLAN_START) :].partition(_PLAN_END)[0]
        return Said("plan", without_private(plan).strip()) if plan.strip() else None
    return None if _BARE_COMMAND.match(text) else Said("prompt", text)


def _is_from_sdk(record: Record) -> bool:
    return (
        _string(record.get("entrypoint")).startswith("sdk")
        or record.get("promptSource") in ("sdk", "system")
        or record.get("turnOrigin") == "sdk"
    )


def _is_from_program(record: Record, in_agent_file: bool) -> bool:
    origin = record.get("origin")
    origin_kind = origin.get("kind") if isinstance(origin, Mapping) else None
    return in_agent_file or is_sidechain(record) or _is_from_sdk(record) or origin_kind not in (None, "human")


def _from_result(block: Record, record: Record) -> list[Said]:
    """Return the result and, where a person spoke through it, the words of that person."""
    raw = without_private(_result_text(block.get("content")))
    detail = record.get("toolUseResult")
    use_id = _string(block.get("tool_use_id")) or None
    status = _status(raw, block, record)
    text = _ERROR_TAGS.sub("", without_client_tags(raw)).strip()
    result = Said("tool_result", text, None, use_id, None, status, is_external=_is_external(detail, status))
    if _is_from_sdk(record):
        return [result]
    if status == "rejected":
        return [result, *_spoken("rejection", _reason(raw, record), use_id)]
    if status != "ok" or not isinstance(detail, Mapping):
        return [result]
    if "answers" in detail and "questions" in detail:
        return [result, *_spoken("choice", _answers(raw, detail), use_id)]
    if raw.startswith(_APPROVAL_START) and not is_sidechain(record) and detail.get("isAgent") is not True:
        return [result, *_spoken("plan", _approved_plan(raw, detail), use_id)]
    return [result]


def _status(text: str, block: Record, record: Record) -> str:
    """Return one of TOOL_STATUSES."""
    detail = record.get("toolUseResult")
    if isinstance(detail, Mapping) and detail.get("interrupted") is True:
        return "cancelled"
    if block.get("is_error") is not True:
        return "ok"
    told = _ERROR_TAGS.sub("", text[:200]).strip()
    if told.startswith(_REJECTED):
        return "rejected"
    return "cancelled" if told.startswith(_CANCELLED) else "error"


def _is_external(detail: object, status: str) -> bool:
    """Tell a web page or an MCP server's answer by its shape; the tool's name is not on this line."""
    if status != "ok":
        return False
    if isinstance(detail, list):
        return True
    if not isinstance(detail, Mapping):
        return False
    return ("url" in detail and "result" in detail) or ("query" in detail and "results" in detail)


def _reason(text: str, record: Record) -> str:
    """Return a person's words in a rejection, without the client's around them; "" where there are none."""
    given = _string(record.get("userFeedback"))
    found = _REASON.search(text)
    words = given or (found.group(1).partition(_REASON_END)[0] if found else "")
    return "" if words.strip().startswith(_CLARIFY_START) else words


def _answers(text: str, detail: Record) -> str:
    """Return "question → answer" for each question that a person answered, one a line."""
    given = detail.get("answers")
    notes = detail.get("annotations")
    if not isinstance(given, Mapping) or _NO_ANSWER.search(text.partition('"')[0][:200]):
        return ""
    lines = []
    for question, answer in given.items():
        told = ", ".join(map(str, answer)) if isinstance(answer, list) else _string(answer)
        note = notes.get(question) if isinstance(notes, Mapping) else None
        added = _string(note.get("notes")) if isinstance(note, Mapping) else ""
        if told.strip() and not _NO_ANSWER.match(told.strip("( ")):
            lines.append(f"{question} → {told}" + (f" ({added})" if added.strip() else ""))
    return "\n".join(lines)


def _approved_plan(text: str, detail: Record) -> str:
    """Return the plan that the result line carries, "" where only the call does."""
    _, mark, quoted = text.partition("## Approved Plan")
    quoted = quoted.partition(":\n")[2] if mark else ""
    return _string(detail.get("plan")) or quoted


def _from_attachment(record: Record, in_agent_file: bool) -> list[Said]:
    """Return a prompt that was typed while the model worked; all other attachments are the client's."""
    attachment = record.get("attachment")
    if not isinstance(attachment, Mapping) or attachment.get("type") != "queued_command":
        return []
    if attachment.get("commandMode") != "prompt" or attachment.get("isMeta") is True:
        return []
    origin = {"origin": attachment["origin"]} if "origin" in attachment else {}
    blocks = _blocks({"content": attachment.get("prompt")}) or []
    texts = [_string(block.get("text")) for block in blocks if block.get("type") == "text"]
    said = _from_texts(texts, {**record, **origin}, in_agent_file)
    return [turn._replace(is_queued=True) for turn in said]


def _from_system(record: Record, in_agent_file: bool) -> list[Said]:
    content = without_private(_string(record.get("content")))
    if record.get("subtype") == "away_summary":
        return _spoken("recap", content.replace(_RECAP_END, ""))
    if record.get("subtype") == "local_command" and _COMMAND.match(content.strip()):
        return _from_typed(content, record, in_agent_file)
    return []


def _spoken(kind: str, text: str, tool_use_id: str | None = None) -> list[Said]:
    text = without_private(text).strip()
    return [Said(kind, text, tool_use_id=tool_use_id)] if text else []


def _blocks(message: object) -> list[Record] | None:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, Mapping)]
    return None


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    parts = content if isinstance(content, list) else []
    return "\n".join(_block_text(part) for part in parts if isinstance(part, Mapping))


def _block_text(block: Record) -> str:
    if isinstance(block.get("text"), str):
        return str(block["text"])
    return f"[{block.get('tool_name') or block.get('title') or block.get('type') or 'block'}]"


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
