"""What an adapter gives: the head of a transcript, and turns with what their record says around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from cortex.transforms.transcripts.records import Record, Utterance, spoken


@dataclass(frozen=True)
class Head:
    """What the beginning of another assistant's transcript says of every record in it."""

    assistant: str  # a key of NAMES: "codex", "gemini", …
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


class Turned(NamedTuple):
    """
    One turn of another assistant.

    `identity` tells it from others of the same words, and is the same wherever the turn is written again;
    None if the record has nothing of that kind.
    """

    envelope: Record
    utterance: Utterance
    identity: str | None


def asked(kind: str, text: str, head: Head) -> list[Utterance]:
    """Return the turn that somebody put to the assistant: a person, or a program in a person's place."""
    return spoken("program" if head.is_from_program else kind, text)


def call(name: str, use_id: str | None, given: Record) -> Utterance:
    """Return the turn of a tool call, under the name and arguments by which the layers know it."""
    return Utterance("tool_call", "", name, use_id, given)


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
