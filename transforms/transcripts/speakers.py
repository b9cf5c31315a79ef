"""Who says what in a record: a person, the assistant, a program, or only the client."""

import re
from collections.abc import Mapping

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.records import (
    Record,
    Utterance,
    blocks,
    flat_text,
    is_from_program,
    spoken,
    string,
)
from cortex.transforms.transcripts.tool_results import from_result
from cortex.transforms.transcripts.turn_text import inside_tag, without_client_tags

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
    if len(texts) > 1 and any("private>" in text.lower() for text in texts):
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
