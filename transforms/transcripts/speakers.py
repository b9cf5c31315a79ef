"""Who says what in a record: a person, the assistant, a program, a tool's result, or only the client."""

import re
from collections.abc import Mapping

from cortex.hooks.prose.plain import has_private_tag, without_private
from cortex.transforms.transcripts.records import (
    Record,
    Utterance,
    blocks,
    flat_text,
    inside_tag,
    is_from_program,
    is_from_sdk,
    is_sidechain,
    spoken,
    string,
    without_client_tags,
)

# -- What a tool's result says: how the call ended, and the words a person gave through it.

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
# The whole of what the client writes around a person's words, from the first character on.
_REASON = re.compile(
    re.escape(
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a "
        "file edit, the new_string was NOT written to the file). "
    )
    + r"(?:To tell you how to proceed, the user said:|"
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
# The client's own tools through which a person speaks. What a server calls its tools stands behind mcp__.
_ASKING_TOOLS = frozenset(("AskUserQuestion",))
_PLANNING_TOOLS = frozenset(("ExitPlanMode", "exit_plan_mode"))
_SERVERS_TOOL = "mcp__"
# Tools that hand on what a page, a server, a skill or another agent wrote, as their failure too.
_FOREIGN_TOOLS = frozenset((
    "WebFetch", "WebSearch", "Task", "Agent", "TaskOutput", "AgentOutputTool", "SendMessage", "Skill",
    "SlashCommand", "ReadMcpResourceTool", "ListMcpResourcesTool",
))  # fmt: skip
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
    return (
        [result]
        if is_from_sdk(record)
        else [result, *_tool_results_persons_words(raw, block.get("content"), status, use_id, record)]
    )


def speaks_for_person(utterance: Utterance, tool_name: str | None, record: Record) -> bool:
    """
    Return whether a person said what stands in a tool's result; `tool_name` is the tool that was called.

    Anyone who writes a tool's output can write it as the client writes a person's words. So answers and
    plans count only from the client's own tools, and a refusal of a tool that hands on foreign text only
    with the client's mark.
    """
    if utterance.kind == "choice":
        return tool_name in _ASKING_TOOLS
    if utterance.kind == "plan":
        return tool_name in _PLANNING_TOOLS
    if utterance.kind != "rejection" or _is_marked_denial(record):
        return True
    return tool_name is not None and not (tool_name.startswith(_SERVERS_TOOL) or tool_name in _FOREIGN_TOOLS)


def _is_marked_denial(record: Record) -> bool:
    return string(record.get("toolDenialKind")).startswith("user")


def _tool_results_persons_words(
    text: str, content: object, status: str, use_id: str | None, record: Record
) -> list[Utterance]:
    detail = record.get("toolUseResult")
    if status == "rejected":
        return _rejection(content, use_id, record)
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
    if message.startswith(_REJECTED) or _is_marked_denial(record):
        return "rejected"
    return "cancelled" if record.get("toolDenialKind") or _CANCELLED.match(message) else "error"


def _is_external(detail: object) -> bool:
    """Tell a web page or an MCP server's answer by its shape; the tool's name is not on this line."""
    if not isinstance(detail, Mapping):
        return isinstance(detail, list)
    return ("url" in detail and "result" in detail) or ("query" in detail and "results" in detail)


def _rejection(content: object, use_id: str | None, record: Record) -> list[Utterance]:
    """
    Return a person's words in a refusal, without the client's around them.

    The client writes one string and repeats it as the record's detail, or gives none or a fixed one.
    """
    detail = record.get("toolUseResult")
    is_clients = isinstance(content, str) and detail in (None, f"Error: {content}", "User rejected tool use")
    match = _REASON.match(content) if isinstance(content, str) and is_clients else None
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
_RECAP_END = "(disable recaps in /config)"

_COMMAND = re.compile(r"<command-(?:name|message|args)>")
_BARE_COMMAND = re.compile(r"/[\w:-]+\Z")
_SHELL_TAG = "bash-input"
# A line that a person began with # to have it kept in the memory file (1.0.x).
_NOTE_TAG = "user-memory-input"


def utterances_in(record: Record, *, in_agent_file: bool) -> list[Utterance] | None:
    """
    Return what a record says, in order; nothing for records that carry no conversation.

    `in_agent_file` is true for the transcript of a subagent, if no person speaks. None means a
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


def _from_assistant(record: Record) -> list[Utterance] | None:
    message = record.get("message")
    answer = blocks(message)
    if answer is None or not isinstance(message, Mapping):
        return None
    if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
        return []
    return [utterance for block in answer for utterance in _from_answer_block(block)]


def _from_answer_block(block: Record) -> list[Utterance]:
    kind = string(block.get("type"))
    if kind in ("text", "thinking"):
        return spoken(kind, string(block.get(kind)))
    if kind in ("tool_use", "server_tool_use"):
        given = block.get("input")
        tool_input = given if isinstance(given, Mapping) else {}
        return [
            Utterance(
                "tool_call",
                "",
                string(block.get("name")) or None,
                string(block.get("id")) or None,
                tool_input,
            )
        ]
    if kind.endswith("_tool_result"):  # of a tool that ran on the server, inside the answer
        text = without_private(flat_text(block.get("content")))
        use_id = string(block.get("tool_use_id")) or None
        return [Utterance("tool_result", text, None, use_id, None, "ok", is_external=kind.startswith("web_"))]
    return []


def _from_user(record: Record, in_agent_file: bool) -> list[Utterance] | None:
    content = blocks(record.get("message"))
    if content is None:
        return None
    results = [block for block in content if block.get("type") == "tool_result"]
    if results:
        return [utterance for block in results for utterance in from_result(block, record)]
    texts = [string(block.get("text")) for block in content if block.get("type") == "text"]
    if record.get("isCompactSummary") is True:
        return spoken("summary", "\n".join(texts))
    return [] if record.get("isMeta") is True else _from_texts(texts, record, in_agent_file)


def _from_texts(texts: list[str], record: Record, in_agent_file: bool) -> list[Utterance]:
    """Classify each text block by itself; what a person typed in several blocks is one prompt."""
    if len(texts) > 1 and any(map(has_private_tag, texts)):
        texts = ["\n".join(texts)]  # a private passage may reach over several blocks
    typed_parts = [
        utterance for text in texts for utterance in _from_typed(without_private(text), record, in_agent_file)
    ]
    prompts = [utterance.text for utterance in typed_parts if utterance.kind == "prompt"]
    others = [utterance for utterance in typed_parts if utterance.kind != "prompt"]
    return others + spoken("prompt", "\n".join(prompts))


def _from_typed(text: str, record: Record, in_agent_file: bool) -> list[Utterance]:
    """Classify one text block in the order in which the kinds can be told apart."""
    text = without_client_tags(text).strip()
    if text.startswith(_SUMMARY_START):
        return spoken("summary", text)
    if text.startswith(_CLIENT_TEXT):
        return []
    utterances = _persons_words(text, record)
    if is_from_program(record, in_agent_file) or text.startswith(_PROGRAM_TEXT):
        return [turn._replace(kind="program") for turn in utterances]
    return utterances


def _persons_words(text: str, record: Record) -> list[Utterance]:
    """Return a slash command's arguments, a shell command, a plan handed over, or a prompt."""
    if _COMMAND.match(text):
        name = inside_tag(text, "command-name").strip() or None
        return [
            utterance._replace(tool_name=name)
            for utterance in spoken("command", inside_tag(text, "command-args"))
        ]
    if text.startswith(f"<{_SHELL_TAG}>"):
        return spoken("shell", inside_tag(text, _SHELL_TAG))
    if text.startswith(f"<{_NOTE_TAG}>"):
        return spoken("prompt", inside_tag(text, _NOTE_TAG))
    if text.startswith(_PLAN_START):
        handed_over = text[len(_PLAN_START) :].partition(_PLAN_END)[0]
        return spoken("plan", string(record.get("planContent")) or handed_over)
    return [] if _BARE_COMMAND.match(text) else spoken("prompt", text)


def _from_attachment(record: Record, in_agent_file: bool) -> list[Utterance]:
    """Return a prompt that was typed while the model worked; all other attachments are the client's."""
    attachment = record.get("attachment")
    if not isinstance(attachment, Mapping) or attachment.get("type") != "queued_command":
        return []
    if attachment.get("commandMode") != "prompt" or attachment.get("isMeta") is True:
        return []
    typed = {**record, "origin": attachment.get("origin") or record.get("origin")}
    prompt = blocks({"content": attachment.get("prompt")}) or []
    texts = [string(block.get("text")) for block in prompt if block.get("type") == "text"]
    return [utterance._replace(is_queued=True) for utterance in _from_texts(texts, typed, in_agent_file)]


def _from_system(record: Record, in_agent_file: bool) -> list[Utterance]:
    content = string(record.get("content"))
    if record.get("subtype") == "away_summary":
        return spoken("recap", content.replace(_RECAP_END, ""))
    if record.get("subtype") == "local_command" and _COMMAND.match(content.strip()):
        return _from_typed(without_private(content), record, in_agent_file)
    return []
