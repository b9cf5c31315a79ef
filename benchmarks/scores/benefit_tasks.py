"""
Tasks of the next session, and the history that they rest on: our own sets, JSON lines, or a coding bench.

A file of tasks is foreign: no path in it leaves the folder that it is laid out in, and what it says to run is
run only where a person allowed it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import re2

from cortex.scores.labels import rows_of
from cortex.transforms.errors import UsageError

# What a person types first needs no more; neither does a repository that is laid out for one task.
MAX_CHARS, MAX_FILES = 1_000_000, 200
KINDS = ("memory", "trap", "control")
BUILT_IN = "built-in"
# Days before today of a history that says none, and between two of its sessions.
_FIRST_DAYS_AGO, _DAYS_BETWEEN = 30, 3

Turn = Sequence[Any]


@dataclass(frozen=True)
class PastSession:
    """A session of the history; a turn is (user, text), (assistant, text) or (tool, name, input, output)."""

    id: str
    days_ago: float
    turns: tuple[Turn, ...]

    def text(self) -> str:
        """Return the session as a reader sees it whole."""
        return "\n\n".join(f"{turn[0]}: {_words(turn)}" for turn in self.turns)

    def transcript(self, name: str, folder: Path, now: datetime) -> tuple[str, bytes]:
        """Return the session's id and its transcript as the client writes it, in `folder`, for this day."""
        session_id = str(uuid5(NAMESPACE_URL, f"{name} {self.id} {folder}"))
        records: list[dict[str, Any]] = []
        begun = now - timedelta(days=self.days_ago)
        for number, message in enumerate(_messages(self.turns)):
            uuid = str(uuid5(NAMESPACE_URL, f"{session_id} {number}"))
            at = (begun + timedelta(minutes=number)).isoformat(timespec="milliseconds")
            records.append(
                {
                    "parentUuid": records[-1]["uuid"] if records else None,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": str(folder),
                    "sessionId": session_id,
                    "version": "2.1.330",
                    "uuid": uuid,
                    "timestamp": at.replace("+00:00", "Z"),
                    **message,
                }
            )
        return session_id, b"".join(json.dumps(record).encode() + b"\n" for record in records)


@dataclass(frozen=True)
class Task:
    """What is typed first in the next session, what a right answer holds, and how it is graded."""

    id: str
    kind: str
    prompt: str
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    # For each item of `must` the strings that stand in any context that lets an assistant know it.
    words: tuple[tuple[str, ...], ...] = ()
    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)
    required_patterns: tuple[str, ...] = ()
    forbidden_patterns: tuple[str, ...] = ()
    history: tuple[PastSession, ...] = ()

    @property
    def is_tested(self) -> bool:
        """Whether commands decide, and no judge."""
        return bool(self.commands)

    def items(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return (place in `must`, words) of each item that the message itself does not hold."""
        words = enumerate(self.words) if self.kind != "control" else ()
        return [(at, item) for at, item in words if item and not holds(self.prompt, item)]

    def oracle(self) -> list[str]:
        """Return the facts that hold: an overturned claim is kept in them for its reader, not for this."""
        return [fact for fact in self.facts if not fact.lower().startswith("stale")]


@dataclass(frozen=True)
class TaskSet:
    """The tasks of one project: its files, its history, and what other memories would hold of it."""

    name: str
    tasks: tuple[Task, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    sessions: tuple[PastSession, ...] = ()
    stale_from: str = ""
    poison: tuple[PastSession, ...] = ()
    by_hand: str = ""
    client_memory: str = ""
    is_built_in: bool = False

    def history_of(self, task: Task) -> tuple[PastSession, ...]:
        """Return the sessions before a task."""
        return task.history or self.sessions

    @property
    def stale_sessions(self) -> tuple[PastSession, ...]:
        """What a memory knows that stopped before the set's plans were overturned."""
        ids = [session.id for session in self.sessions]
        return self.sessions[: ids.index(self.stale_from)] if self.stale_from in ids else ()


def holds(text: str, words: Iterable[str]) -> bool:
    """
    Return whether all `words` stand in a text, in any case; of `a|b` either.

    >>> holds("Refunds: 21 days from Delivery", ["21 days", "three weeks|delivery"])
    True
    """
    text = text.lower()
    return all(any(each in text for each in word.lower().split("|")) for word in words)


def load_tasks(paths: Sequence[Path]) -> list[TaskSet]:
    """Return the sets in files, the built-in ones for none. Raises NotFound and UsageError."""
    if not paths:
        folder = Path(str(files("cortex.data"))) / "benefit"
        return [each for path in sorted(folder.glob("*.json")) for each in _sets_in(path, is_built_in=True)]
    sets = [each for path in paths for each in _sets_in(path)]
    ids = [task.id for each in sets for task in each.tasks]
    if doubled := {name for name in ids if ids.count(name) > 1}:
        raise _refused(str(paths[0]), f"the task '{min(doubled)}' occurs twice")
    if not ids:
        raise UsageError(f"{paths[0]} holds no tasks.", "Give one JSON object a line, or {repo, tasks}.")
    return sets


def _sets_in(path: Path, *, is_built_in: bool = False) -> Iterator[TaskSet]:
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        document = None  # JSON lines; or the reader of lines says what is wrong
    if isinstance(document, dict) and "tasks" in document:
        yield _bench(document, path, is_built_in=is_built_in)
        return
    by_project: dict[str, list[Task]] = {}
    for project, task in rows_of(path, _task_of_line):
        by_project.setdefault(project, []).append(task)
    for project, tasks in by_project.items():
        yield TaskSet(project, tuple(tasks))


def _task_of_line(value: object, where: str) -> tuple[str, Task]:
    row = _object(value, where)
    return _folder_name(_text(row, "project", where), where), _task(row, where)


def _bench(row: Mapping[str, Any], path: Path, *, is_built_in: bool) -> TaskSet:
    where = str(path)
    repo = _object(row.get("repo"), f"{where}: repo")
    if repo.get("kind") != "inline_python":
        raise _refused(where, "repo.kind must be inline_python")
    tasks = [_object(task, f"{where}: a task") for task in _list(row, "tasks", where)]
    return TaskSet(
        _folder_name(_text(row, "name", where) if "name" in row else path.stem, where),
        tuple(_task(task, f"{where} task {at}") for at, task in enumerate(tasks)),
        _files(repo.get("files"), where),
        tuple(_session(each, where, at) for at, each in enumerate(_list(row, "sessions", where))),
        str(row.get("stale_from", "")),
        tuple(_session(each, where, at) for at, each in enumerate(_list(row, "poison", where))),
        joined(row.get("curated_context", "")),
        joined(row.get("client_memory", "")),
        is_built_in,
    )  # fmt: skip


def _task(row: Mapping[str, Any], where: str) -> Task:
    score = _object(row.get("score", {}), f"{where}: score")
    episodes = _list(row, "history_episodes", where)
    # The first form of the bench puts memories in by hand; here the assistant once said them.
    memories = [
        _text(_object(each, where), "text", where)
        for holder in (row, *episodes)
        for each in _list(_object(holder, where), "memories", where)
    ]
    history = [_episode(_object(each, where), where, at, len(episodes)) for at, each in enumerate(episodes)]
    if memories and not any(session.turns for session in history):
        turns = (("user", "Note what we agreed on."), *(("assistant", text) for text in memories))
        history = [PastSession("memories", _FIRST_DAYS_AGO, turns)]
    kind = row.get("kind", "memory")
    if kind not in KINDS:
        raise _refused(where, f"kind must be one of {', '.join(KINDS)}")
    return Task(
        id=_text(row, "id", where),
        kind=kind,
        prompt=_text(row, "prompt", where),
        must=_texts(row, "must", where),
        must_not=_texts(row, "must_not", where),
        facts=_texts(row, "facts", where) or _gold(row.get("gold_memory")) or tuple(memories),
        words=tuple(_texts({"words": each}, "words", where) for each in _list(row, "words", where)),
        allowed=tuple(map(_safe(where), _texts(row, "allowed_paths", where))),
        forbidden=tuple(map(_safe(where), _texts(row, "forbidden_paths", where))),
        commands=tuple(_command(each, where) for each in _list(score, "commands", where)),
        hidden=_files(score.get("hidden_files", {}), where),
        required_patterns=_patterns(score, "required_patch_patterns", where),
        forbidden_patterns=_patterns(score, "forbidden_patch_patterns", where),
        history=tuple(history),
    )


def _session(value: object, where: str, at: int) -> PastSession:
    row = _object(value, where)
    turns = _list(row, "turns", where)
    for turn in turns:
        is_tool = isinstance(turn, list) and turn[:1] == ["tool"] and len(turn) == 4
        is_said = isinstance(turn, list) and len(turn) == 2 and turn[0] in ("user", "assistant")
        if not (is_tool or is_said) or not isinstance(turn[-1], str):
            raise _refused(where, f"session {at} has a turn of another form")
    days = row.get("days_ago", _FIRST_DAYS_AGO)
    if not isinstance(days, int | float) or isinstance(days, bool) or not 0 <= days <= 3650:
        raise _refused(where, f"session {at}: days_ago must be a number of 0 to 3650")
    return PastSession(_text(row, "id", where), float(days), tuple(map(tuple, turns)))


def _episode(row: Mapping[str, Any], where: str, at: int, of: int) -> PastSession:
    turns: list[Turn] = []
    call: tuple[str, object] = ("tool", {})
    for value in _list(row, "raw_events", where):
        event = _object(value, where)
        name, content = str(event.get("tool_name") or ""), event.get("sanitized_content")
        if event.get("role") in ("user", "assistant") and isinstance(content, str) and content.strip():
            turns.append((event["role"], content))
        elif event.get("sanitized_tool_output") is not None:
            turns.append(("tool", name or call[0], call[1], str(event["sanitized_tool_output"])))
        elif name:
            call = (name, event.get("sanitized_tool_input"))
    return PastSession(f"episode-{at}", _FIRST_DAYS_AGO + _DAYS_BETWEEN * (of - at), tuple(turns))


def _messages(turns: Iterable[Turn]) -> Iterator[dict[str, Any]]:
    for number, turn in enumerate(turns):
        if turn[0] == "user":
            yield {"type": "user", "promptSource": "typed", "message": {"role": "user", "content": turn[1]}}
        elif turn[0] == "assistant":
            yield _answer(number, {"type": "text", "text": turn[1]})
        else:
            given = turn[2] if isinstance(turn[2], dict) else {"input": turn[2]}
            call = {"type": "tool_use", "id": f"toolu_{number:04d}", "name": turn[1], "input": given}
            yield _answer(number, call)
            block = {"type": "tool_result", "tool_use_id": call["id"], "content": turn[3], "is_error": False}
            yield {
                "type": "user",
                "message": {"role": "user", "content": [block]},
                "toolUseResult": {"stdout": turn[3], "stderr": ""},
            }


def _answer(number: int, block: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    named = {"id": f"msg_{number:04d}", "type": "message", "role": "assistant", "model": "invented"}
    return {
        "type": "assistant",
        "message": {**named, "content": [block], "stop_reason": None, "usage": usage},
    }


def _words(turn: Turn) -> str:
    return str(turn[1]) if turn[0] != "tool" else f"{turn[1]} {json.dumps(turn[2])}\n{turn[3]}"


def joined(value: object) -> str:
    """Return a text that a file may give as a list of its lines."""
    lines = value if isinstance(value, list) else [value]
    return "\n".join(map(str, lines)) + ("\n" if isinstance(value, list) else "")


def safe_path(name: str) -> bool:
    """
    Return whether a path stays in the folder that it is laid out in, on every system.

    >>> [safe_path(name) for name in ("a/b.py", "../a", "/etc/passwd", "a\\\\b", ".git/config", "")]
    [True, False, False, False, False, False]
    """
    parts = PurePosixPath(name).parts
    is_plain = not any(sign in name for sign in "\\:\0\n") and not name.startswith("/")
    return bool(parts) and is_plain and ".." not in parts and ".git" not in map(str.lower, parts)


def _safe(where: str) -> Any:
    def checked(name: str) -> str:
        if not safe_path(name):
            raise _refused(where, f"the path {name!r} leaves the folder")
        return str(PurePosixPath(name))

    return checked


def _files(value: object, where: str) -> dict[str, str]:
    rows = _object(value, f"{where}: files")
    if len(rows) > MAX_FILES or sum(len(joined(text)) for text in rows.values()) > MAX_CHARS:
        raise _refused(where, f"more than {MAX_FILES} files or {MAX_CHARS:,} characters")
    texts = {_safe(where)(name): joined(text) for name, text in rows.items()}
    if not all(_is_unicode(each) for pair in texts.items() for each in pair):
        raise _refused(where, "files must be text without lone surrogates")
    folders = {str(parent) for name in texts for parent in PurePosixPath(name).parents}
    if both := folders & texts.keys():
        raise _refused(where, f"{min(both)!r} is a file and a folder")
    return texts


def _folder_name(name: str, where: str) -> str:
    """Return the name of a set, which is also that of the folder in which its tasks are done."""
    # A path here would be emptied and written to.
    if not re2.fullmatch(r"[\w-][\w .+@-]{0,99}", name):
        raise _refused(where, f"{name!r} names no set: letters, digits, spaces and .+@_- only")
    return name


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _command(value: object, where: str) -> tuple[str, ...]:
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise _refused(where, "a command must be a list of words")
    return tuple(words)


def _patterns(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    patterns = _texts(row, name, where)
    for pattern in patterns:
        try:
            re2.compile(f"(?m){pattern}")  # RE2: a stranger's pattern takes no longer than its text
        except re2.error as error:
            raise _refused(where, f"the pattern {pattern!r} cannot be used: {error}") from error
    return patterns


def _gold(value: object) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        value = value.get("facts") or value.get("text")
    values = value if isinstance(value, list) else [value] if value else []
    return tuple(str(each.get("text", "")) if isinstance(each, Mapping) else str(each) for each in values)


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _refused(where, "it must be a JSON object")
    return value


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = row.get(name, [])
    if not isinstance(value, list):
        raise _refused(where, f"'{name}' must be a list")
    return value


def _texts(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = _list(row, name, where)
    if not all(isinstance(text, str) for text in value):
        raise _refused(where, f"'{name}' must be a list of texts")
    return tuple(value)


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_CHARS:
        raise _refused(where, f"'{name}' must be text and not empty")
    return value


def _refused(where: str, problem: str) -> UsageError:
    return UsageError(f"{where}: {problem}.", "The forms of tasks are described in docs/benefit.md.")
