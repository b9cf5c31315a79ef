"""How an assistant is declared, and what its adapter gives: the head of a transcript, and turns."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from cortex.hooks.prose.plain import without_private
from cortex.transforms.transcripts.records import Record, Utterance, spoken, string

# A command of the program itself, which says nothing.
BARE_COMMAND = re.compile(r"/[\w:-]+\Z")


@dataclass(frozen=True)
class Head:
    """What the beginning of another assistant's transcript says of every record in it."""

    assistant: str  # a key of KNOWN_ASSISTANTS: "codex", "gemini", …
    session_id: str | None = None
    agent_id: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    is_from_program: bool = False  # a program or another agent asks, not a person
    project_hash: str | None = None  # sha256 of the project's path, if no path is told
    is_document: bool = False  # one JSON object that is rewritten each time, not lines

    def envelope(self, said_at: object, message_id: str | None = None) -> Record:
        """Return what surrounds a turn, under the names that Claude Code's records have for it."""
        client = f"{self.assistant} {self.version}" if self.version else self.assistant
        return {
            "type": "assistant" if message_id else "user",
            "message": {"id": message_id},
            "sessionId": self.session_id,
            "agentId": self.agent_id,
            "timestamp": said_at,
            "cwd": self.cwd,
            "gitBranch": self.git_branch,
            "version": client,
        }


class ParsedTurn(NamedTuple):
    """
    One turn of another assistant.

    `identity` tells it from others of the same words, and is the same wherever the turn is written again;
    None if the record has nothing of that kind.
    """

    envelope: Record
    utterance: Utterance
    identity: str | None


@dataclass(frozen=True)
class Adapter:
    """
    How the transcripts of an assistant are read that writes another format than Claude Code.

    `is_own` says of a file's first bytes whether they are its own, `head_of` what they say of all of it (with
    the file's path), `parsed_turns` gives the turns of a record: none for bookkeeping, None for a shape that
    is not known. A line that begins as in `silent` holds none. `lines_of` gives the lines of a file that is
    one JSON document, `folder_in` the folder in which a record says that the session goes on.
    """

    is_own: Callable[[bytes], bool]
    head_of: Callable[[bytes, str], Head]
    parsed_turns: Callable[[Record, Head], list[ParsedTurn] | None]
    silent: tuple[bytes, ...] = ()
    lines_of: Callable[[bytes], bytes | None] | None = None
    folder_in: Callable[[Record], str] | None = None


@dataclass(frozen=True)
class Assistant:
    """
    An assistant whose sessions are read; the value ASSISTANT of a module in this folder.

    Its transcripts are in `folders` below `home`, a folder of the user's, or below the one that the variable
    of the environment names: files *.jsonl, and those whose folder's and own name `files` matches. Without an
    adapter the reader itself reads them.
    """

    name: str
    label: str  # the name people know it by
    variable: str
    home: str
    folders: tuple[str, ...]
    adapter: Adapter | None = None
    files: re.Pattern[str] | None = None


def asked(kind: str, text: str, head: Head) -> list[Utterance]:
    """Return the turn that somebody put to the assistant: a person, or a program in a person's place."""
    return spoken("program" if head.is_from_program else kind, text)


def call(name: str, use_id: str | None, given: Record) -> Utterance:
    """Return the turn of a tool call, under the name and arguments by which the layers know it."""
    return Utterance("tool_call", "", name, use_id, given)


def tool_result(text: str, use_id: str | None, status: str, *, is_external: bool = False) -> Utterance:
    """Return the turn of what came back from a call."""
    text = without_private(text).strip()
    return Utterance("tool_result", text, None, use_id, None, status, is_external=is_external)


def fields_of(value: object) -> Record:
    """Return `value` if it is an object, {} if the record has something else in its place."""
    return value if isinstance(value, Mapping) else {}


def by_file_path(tool: str, given: Record, keys: tuple[str, ...]) -> Record:
    """Return the arguments of a tool for one file, whose path goes by one of `keys`, with it as file_path."""
    path = next((given[key] for key in keys if string(given.get(key))), None)
    if tool not in ("Read", "Write", "Edit") or not path:
        return given
    return {"file_path": path, **{key: value for key, value in given.items() if key not in keys}}


def object_in(text: object) -> Mapping[str, object] | None:
    """Return the JSON object that a string holds, if it holds one."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def plan(steps: object, wording: str) -> Record:
    """
    Return a plan's steps as a todo list; `wording` is the key of a step's words.

    >>> plan([{"step": "Measure", "status": "cancelled"}], "step")
    {'todos': [{'content': 'Measure', 'status': 'deleted'}]}
    """
    listed = steps if isinstance(steps, list) else []
    todos = [
        {
            "content": step[wording],
            "status": {"cancelled": "deleted"}.get(str(step.get("status")), step.get("status")),
        }
        for step in listed
        if isinstance(step, dict) and isinstance(step.get(wording), str)
    ]
    return {"todos": todos}
