"""The parts of a transcript record: content blocks, who wrote it, and the wording of the turn it becomes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import orjson

from cortex.hooks.prose.own_prose import EDIT_TOOLS
from cortex.hooks.prose.plain import without_private
from cortex.transforms.redaction.redact import redact

Record = Mapping[str, object]


class Utterance(NamedTuple):
    """One turn as the client wrote it, not yet redacted or cut."""

    kind: str
    text: str
    tool_name: str | None = None  # of a call; of a slash command, its name with the slash
    tool_use_id: str | None = None
    tool_input: Record | None = None
    tool_status: str | None = None
    is_external: bool = False
    is_queued: bool = False


def spoken(kind: str, text: str, tool_use_id: str | None = None) -> list[Utterance]:
    """Return the turn that `text` is, without its private passages; none if no words are left."""
    text = without_private(text).strip()
    return [Utterance(kind, text, tool_use_id=tool_use_id)] if text else []


def string(value: object) -> str:
    """Return `value` if it is a string, "" if the record has something else in its place."""
    return value if isinstance(value, str) else ""


def blocks(message: object) -> list[Record] | None:
    """Return the content blocks of a message, plain text as one block; None for any other shape."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, Mapping)]
    return None


def flat_text(content: object) -> str:
    """Return a result's content as text; images and other blocks leave their name in brackets."""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list):
        return ""
    return "\n".join(_block_text(part) for part in parts if isinstance(part, Mapping))


def _block_text(block: Record) -> str:
    text = block.get("text")
    if isinstance(text, str):
        return text
    names = (string(block.get(key)) for key in ("tool_name", "title", "type"))
    return f"[{next(filter(None, names), 'block')}]"


def is_sidechain(record: Record) -> bool:
    """Return whether a record belongs to a subagent's conversation."""
    return record.get("isSidechain") is True


def is_from_sdk(record: Record) -> bool:
    """Return whether a program, not a person, drives the session at this record."""
    return (
        string(record.get("entrypoint")).startswith("sdk")
        or record.get("promptSource") in ("sdk", "system")
        or record.get("turnOrigin") == "sdk"
    )


def is_from_program(record: Record, in_agent_file: bool) -> bool:
    """Return whether the prompt in a record was written by a program or by another agent."""
    origin = record.get("origin")
    origin_kind = origin.get("kind") if isinstance(origin, Mapping) else None
    return in_agent_file or is_sidechain(record) or is_from_sdk(record) or origin_kind not in (None, "human")


# -- The wording of a turn: private passages and client tags out, secrets replaced, long text cut.


@dataclass(frozen=True)
class Limits:
    """What of a transcript is kept. A change of a default makes other rows: raise READER_VERSION with it."""

    # The longest line seen in 556 MB is 2.1 MB (images); thirty times that is not a transcript any more.
    line_bytes: int = 64 * 2**20
    # About 3,000 words. Longer prose is nearly always something pasted; the request stands at its start.
    text_chars: int = 20_000
    # The verdict of a command is in its first and last lines (median line 1.1 kB, 90 % under 5.8 kB).
    result_head_chars: int = 2_000
    result_tail_chars: int = 1_000
    input_value_chars: int = 1_000
    # Edit and Write repeat the file; its path and how the change begins say what was done.
    edit_value_chars: int = 300
    # Whether e-mail addresses and phone numbers are taken for secrets; the settings say so.
    keeps_personal_data: bool = True
    # What was said in them or below them is left out, also of a session that began elsewhere.
    excluded_folders: tuple[str, ...] = ()

    def redact(self, text: str) -> tuple[str, int]:
        """Return `text` without what is not kept, and how many marks stand in its place."""
        return redact(text, personal_data=not self.keeps_personal_data)

    def name(self, value: object) -> str | None:
        """Return a tool's, branch's or version's name without secrets; None if there is none."""
        return _named(value, self.keeps_personal_data) if isinstance(value, str) and value else None


# A secret must be whole when the redactor sees it: text is cut this far beyond the limit before, and at the
# limit after redaction. The longest common one, a 4096-bit RSA key in PEM, has 3,272 characters.
MARGIN_CHARS = 4_096

# Tools whose input is the person's plan or task list: every word may be wanted.
WHOLE_TOOLS = frozenset(
    ("TodoWrite", "TaskCreate", "TaskUpdate", "ExitPlanMode", "exit_plan_mode", "AskUserQuestion")
)
# The inputs of 3,383 calls in 45 MB of real sessions nest up to 5 levels. orjson writes 254 levels, and
# Python's own stack ends at 1,000 calls.
DEPTH_MAX = 64
TOO_DEEP = "[…]"


# The argument that says most about a call, best first.
SALIENT_KEYS = (
    "file_path", "notebook_path", "command", "pattern", "plan", "url", "query", "skill", "subject",
    "description", "prompt", "message", "path", "task_id", "taskId",
)  # fmt: skip


@lru_cache(maxsize=4_096)  # every record names a branch and a version, nearly always the same
def _named(name: str, keeps_personal_data: bool) -> str:
    return redact(name, personal_data=not keeps_personal_data)[0]


_CLIENT_TAG = re.compile(r"<(system-reminder|ide_[a-z_]+|session-start-hook|user-prompt-submit-hook)>")


def without_client_tags(text: str) -> str:
    """
    Return `text` without what the client wove into it: reminders, hook output, the editor's context.

    A tag that is never closed stays: it is quoted, not used.
    """
    kept: list[str] = []
    position, unclosed = 0, set[str]()
    # Not one pattern from opening to closing tag: on many tags left open its time grows with their square.
    for opening in _CLIENT_TAG.finditer(text):
        closing = f"</{opening.group(1)}>"
        if opening.start() < position or closing in unclosed:
            continue
        end = text.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            continue
        kept.append(text[position : opening.start()])
        position = end + len(closing)
    return "".join(kept) + text[position:] if kept else text


def inside_tag(text: str, tag: str) -> str:
    """Return what the first `<tag>` of `text` holds, up to the end if it is not closed; "" without one."""
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def redacted_head(text: str, limits: Limits) -> tuple[str, int]:
    """Return the first `text_chars` characters, redacted, with a mark where cut, and the redactions."""
    limit_chars = limits.text_chars
    if len(text) <= limit_chars:
        return limits.redact(text)
    head, count = limits.redact(text[: limit_chars + MARGIN_CHARS])
    return f"{head[:limit_chars]}… [{len(text) - limit_chars} characters cut]", count


def redacted_ends(text: str, limits: Limits) -> tuple[str, int]:
    """Return head and tail of a tool's output, redacted, with a mark between them, and the redactions."""
    head_chars, tail_chars = limits.result_head_chars, limits.result_tail_chars
    cut_chars = len(text) - head_chars - tail_chars
    if cut_chars <= 2 * MARGIN_CHARS:
        whole, count = limits.redact(text)
        if len(whole) <= head_chars + tail_chars:
            return whole, count
        cut_chars = len(whole) - head_chars - tail_chars
        return f"{whole[:head_chars]}… [{cut_chars} characters cut] …{whole[-tail_chars:]}", count
    head, head_count = limits.redact(text[: head_chars + MARGIN_CHARS])
    tail, tail_count = limits.redact(text[-tail_chars - MARGIN_CHARS :])
    kept = f"{head[:head_chars]}… [{cut_chars} characters cut] …{tail[-tail_chars:]}"
    return kept, head_count + tail_count


def redacted_input(tool_name: str, tool_input: Mapping[str, object], limits: Limits) -> tuple[str, str, int]:
    """Return a call's input as JSON, its salient argument as text, and the number of redactions in both."""
    limit_chars = _value_limit(tool_name, limits)
    public = _without_private_values(tool_input)
    # One call for all values; taking them one by one is needed only if something was found.
    seen_chars = limit_chars + MARGIN_CHARS
    _, count = limits.redact("\n".join(f"{key}: {value[:seen_chars]}" for key, value in _strings(public, "")))
    kept = _kept_value(public, "", limits, limit_chars, has_secret=count > 0)
    as_json = orjson.dumps(kept, default=str).decode()
    if len(as_json) > limits.text_chars and tool_name not in WHOLE_TOOLS:
        kept = _outline(kept)
        as_json = orjson.dumps(kept, default=str).decode()
    return as_json, _salient(kept), count


def _value_limit(tool_name: str, limits: Limits) -> int:
    if tool_name in WHOLE_TOOLS:
        return limits.text_chars
    return limits.edit_value_chars if tool_name in EDIT_TOOLS else limits.input_value_chars


def _without_private_values(value: object, depth: int = 0) -> object:
    """Return `value` without private passages; what lies deeper than DEPTH_MAX leaves a mark."""
    if isinstance(value, str):
        return without_private(value)
    if isinstance(value, Mapping | list) and depth >= DEPTH_MAX:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {
            without_private(str(key)): _without_private_values(item, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without_private_values(item, depth + 1) for item in value]
    return value


def _strings(value: object, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _strings(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)


def _kept_value(value: object, key: str, limits: Limits, limit_chars: int, *, has_secret: bool) -> object:
    """Cut every string and, where the input has a secret, redact it as "key: value" before."""
    if isinstance(value, str):
        return _kept_string(value, key, limits, limit_chars, has_secret=has_secret)
    if isinstance(value, Mapping):
        names = {name: limits.redact(name)[0] if has_secret else name for name in value}
        return {
            names[name]: _kept_value(item, name, limits, limit_chars, has_secret=has_secret)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_kept_value(item, key, limits, limit_chars, has_secret=has_secret) for item in value]
    return value


def _kept_string(value: str, key: str, limits: Limits, limit_chars: int, *, has_secret: bool) -> str:
    head = value
    if has_secret:  # `password: x` is a secret where `x` alone is not
        label = f"{key}: "
        head = limits.redact(label + value[: limit_chars + MARGIN_CHARS])[0].removeprefix(label)
    if len(value) <= limit_chars:
        return head
    return f"{head[:limit_chars]}… [{len(value) - limit_chars} characters cut]"


def _outline(value: object) -> object:
    """Return only the outermost scalars of an input that stays large though each value is cut."""
    if not isinstance(value, Mapping):
        return {}
    return {name: item if not isinstance(item, Mapping | list) else TOO_DEEP for name, item in value.items()}


def _salient(value: object) -> str:
    if not isinstance(value, Mapping):
        return ""
    for key in SALIENT_KEYS:
        value_of_key = value.get(key)
        if isinstance(value_of_key, str) and value_of_key.strip():
            return value_of_key
    wanted = ("question", "content", "subject")
    texts = [text for key, text in _strings(value, "") if key in wanted]
    return "\n".join(texts) or next((text for _, text in _strings(value, "") if text.strip()), "")
