"""The transcript reader: bytes of a JSONL file in, rows of TURNS out, one line at a time."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa

from cortex.transforms.errors import contained
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import TURNS
from cortex.transforms.transcripts.assistants import (
    Head,
    ParsedTurn,
    folder_in,
    may_name_folder,
    parsed_turns,
)
from cortex.transforms.transcripts.assistants import may_speak as may_speak_elsewhere
from cortex.transforms.transcripts.records import (
    Limits,
    Record,
    Utterance,
    is_sidechain,
    redacted_ends,
    redacted_head,
    redacted_input,
)
from cortex.transforms.transcripts.speakers import speaks_for_person, utterances_in

# Raise it when the same line gives other rows than before: stored rows are then read again.
READER_VERSION = 2

# Why a line, or a whole file, is passed over for its size.
LINE_TOO_LONG, FILE_TOO_LONG = "line too long", "file too long"

# Why a line was set aside; the text of the line is never kept.
REASONS = (
    "not JSON",
    "not an object",
    "not UTF-8",
    "binary",
    "comment",
    LINE_TOO_LONG,
    "truncated",
    "unknown shape",
    "too many blocks",
)

TRUST_OF_KIND = {
    "prompt": "user",
    "command": "user",
    "shell": "user",
    "rejection": "user",
    "choice": "user",
    "plan": "user",
    "text": "assistant",
    "thinking": "assistant",
    "tool_call": "assistant",
    "summary": "assistant",
    "recap": "assistant",
    "program": "assistant",
    "tool_result": "tool",
}

# A line without any of these, as a JSON string of its own, is bookkeeping: no record that speaks can lack
# all of them, whatever the order of its keys, since quotes inside a string are escaped.
_SPEAKING = (b'"user"', b'"assistant"', b'"queued_command"', b'"away_summary"', b'"local_command"')

# Of so many unread lines the numbers are kept; of more it is counted how many there are, by reason.
UNREAD_NAMED = 1_000

# What the column `block` holds. The longest message seen has about 100 blocks.
BLOCKS_MAX = 2**15 - 1

# Claude Code's blocks have been numbered 0, 2, 4 from the first version on. A turn without an id and a time
# has the number in its own id, so it stays.
CLAUDE_BLOCK_STEP = 2

_BLOCK = TURNS.arrow.get_field_index("block")

_DECODER = json.JSONDecoder()

TurnCells = tuple[Any, ...]


@dataclass(frozen=True)
class Source:
    """
    Where a transcript comes from; the ids are used where its records carry none.

    `head` is what another assistant's transcript says at its beginning; None for Claude Code's.
    """

    file: str
    project_id: str
    session_id: str | None = None
    agent_id: str | None = None
    head: Head | None = None


@dataclass(frozen=True)
class UnreadLine:
    """
    A line that could not be read, or not all of it: its number in the file, from 1, and the reason.

    The reason is one of REASONS, or what `faults.contained` notes of a shape that nobody foresaw. Without a
    number it stands for the `count` lines of that reason behind the first UNREAD_NAMED.
    """

    line: int | None
    reason: str
    count: int = 1


@dataclass(frozen=True)
class Reading:
    """
    What was read: TURNS in file order, the lines set aside, and how far the reader came.

    `consumed_bytes` is where the next reading begins. `consumed_lines` counts line ends, so the next
    reading begins at `first_line + consumed_lines`, also when the last line is read before its end came.
    `is_transcript` says that some line was a record.
    """

    turns: pa.Table
    unread: list[UnreadLine]
    consumed_bytes: int
    consumed_lines: int
    is_transcript: bool


class ToolNames:
    """
    What earlier lines say of later ones: the tool of each call by its id, and the folder of the session.

    `before` yields the lines in front of those that are read; they are looked at only if a call is not here,
    and of an assistant whose records name no folder.
    """

    def __init__(self, before: Callable[[], Iterable[bytes]] = tuple) -> None:
        self._names: dict[str, str] = {}
        self._before: Callable[[], Iterable[bytes]] | None = before
        self._folder = ""

    def folder_at(self, record: Record, head: Head) -> str | None:
        """Return the folder that a session is in from this record on: where it began, or where it went."""
        if self._before is not None:
            before, self._before = self._before, None
            for line in before():
                with contained(lambda _: None):
                    for earlier in objects_in(line)[0] if may_name_folder(line, head) else ():
                        self._folder = folder_in(earlier, head) or self._folder
        self._folder = folder_in(record, head) or self._folder
        return self._folder or head.cwd

    def add(self, utterances: Iterable[Utterance]) -> None:
        """Take in the calls among what a record says."""
        for utterance in utterances:
            if utterance.kind == "tool_call" and utterance.tool_use_id and utterance.tool_name:
                self._names.setdefault(utterance.tool_use_id, utterance.tool_name)

    def of(self, use_id: str) -> str | None:
        """Return the tool that was called, None if the transcript does not hold the call."""
        if use_id not in self._names and self._before is not None:
            before, self._before = self._before, None
            for line in before():
                with contained(lambda _: None):
                    for record in objects_in(line)[0] if b'"tool_use"' in line else ():
                        self.add(utterances_in(record, in_agent_file=False) or ())
        return self._names.get(use_id)


def read_transcript(
    data: bytes,
    *,
    source: Source,
    first_line: int = 1,
    final: bool = False,
    limits: Limits | None = None,
    tools: ToolNames | None = None,
) -> Reading:
    """
    Return the turns in `data`, the bytes of a transcript from some line's beginning on.

    Each line is read by itself, so reading on from `consumed_bytes` gives the same rows as reading from
    the start. A last line without its newline is read if it is complete, and otherwise left for the next
    reading, or set aside when `final` says that no more will come. `first_line` is the number of the
    first line of `data`, from 1; `tools` holds the calls before it. Never raises on bad input.
    """
    limits, tools = limits or Limits(), tools or ToolNames()
    rows: list[TurnCells] = []
    unread: list[UnreadLine] = []
    more: Counter[str] = Counter()
    consumed, line_number, has_record = 0, first_line, False
    for start, stop, is_ended in _lines(data):
        line_rows, reason = _contained(
            data[start:stop], line_number, source, limits, tools, is_ended=is_ended
        )
        if reason and not is_ended and not final:
            break
        if reason:
            is_cut = reason == "not JSON" and not is_ended
            reason = "truncated" if is_cut else reason
            if len(unread) < UNREAD_NAMED:
                unread.append(UnreadLine(line_number, reason))
            else:
                more[reason] += 1
        has_record = has_record or (not reason and bool(data[start:stop].strip()))
        rows.extend(line_rows)
        consumed = stop + is_ended
        line_number += is_ended
    unread += [UnreadLine(None, reason, count) for reason, count in more.items()]
    return Reading(_turns(rows), unread, consumed, line_number - first_line, has_record or bool(rows))


def _lines(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield start, stop and whether a newline ends it, for each line; only \\n ends a line."""
    start = 0
    while (stop := data.find(b"\n", start)) >= 0:
        yield start, stop, True
        start = stop + 1
    if start < len(data):
        yield start, len(data), False


def _contained(
    raw: bytes, line_number: int, source: Source, limits: Limits, tools: ToolNames, *, is_ended: bool
) -> tuple[list[TurnCells], str | None]:
    """Return what `_rows_of_line` does; a fault costs this line alone."""
    faults: list[str] = []
    rows: list[TurnCells] = []
    reason: str | None = None
    with contained(faults.append):
        rows, reason = _rows_of_line(raw, line_number, source, limits, tools, is_ended=is_ended)
        if any(row[_BLOCK] > BLOCKS_MAX for row in rows[-1:]):
            rows = [row for row in rows if row[_BLOCK] <= BLOCKS_MAX]
            reason = "too many blocks"
    return ([], faults[0]) if faults else (rows, reason)


def _rows_of_line(
    raw: bytes, line_number: int, source: Source, limits: Limits, tools: ToolNames, *, is_ended: bool
) -> tuple[list[TurnCells], str | None]:
    """Return the rows of one line, and one of REASONS if some of it could not be read."""
    if len(raw) > limits.line_bytes:
        return [], LINE_TOO_LONG
    line = raw.strip()
    speaks = line_may_speak if source.head is None else may_speak_elsewhere
    # A line still being written may end in an inner } before the word that tells its type.
    if not line or (is_ended and not speaks(line)):
        return [], None
    records, reason = objects_in(line)
    rows: list[TurnCells] = []
    step = CLAUDE_BLOCK_STEP if source.head is None else 1
    for record in records:
        turns = _turns_in(record, source, tools)
        if turns is None:
            reason = reason or "unknown shape"
            continue
        context: _Context | None = None
        begin = len(rows)
        for at, turn in enumerate(turns):
            if context is None or context.record is not turn.envelope:
                context = _Context(turn.envelope, source, limits, line_number)
            rows.append(context.row(turn, begin + step * at))
    return rows, reason


def _turns_in(record: Record, source: Source, tools: ToolNames) -> list[ParsedTurn] | None:
    """Return the turns in one record, each with what surrounds it; None for a shape that is not known."""
    if source.head is not None:
        return parsed_turns(record, replace(source.head, cwd=tools.folder_at(record, source.head)))
    turns = utterances_in(record, in_agent_file=source.agent_id is not None)
    if turns is None:
        return None
    tools.add(turns)
    return [
        ParsedTurn(record, turn, None)
        for turn in turns
        if turn.kind in ("tool_call", "tool_result")
        or turn.tool_use_id is None
        or speaks_for_person(turn, tools.of(turn.tool_use_id), record)
    ]


def line_may_speak(line: bytes) -> bool:
    """Return whether a line may hold a turn, or is damaged so that it must be looked at."""
    is_whole = line.startswith(b"{") and line.endswith(b"}")
    return not is_whole or any(word in line for word in _SPEAKING)


def objects_in(line: bytes) -> tuple[list[Record], str | None]:
    """Return the JSON objects of a line, glued ones too, and why the rest could not be read."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _glued_objects(line)
    return ([record], None) if isinstance(record, dict) else ([], "not an object")


def _glued_objects(line: bytes) -> tuple[list[Record], str | None]:
    if line.startswith(b"//"):
        return [], "comment"
    if b"\0" in line:
        return [], "binary"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return [], "not UTF-8"
    text = text.removeprefix("\ufeff")
    records: list[Record] = []
    position = 0
    while position < len(text):
        try:
            record, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return records, "not JSON"
        if not isinstance(record, dict):
            return records, "not an object"
        records.append(_with_whole_characters(record))
        while position < len(text) and text[position].isspace():
            position += 1
    return records, None


def _with_whole_characters(value: Any) -> Any:
    """Replace halves of surrogate pairs, which JSON can escape and neither Arrow nor UTF-8 can hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_with_whole_characters(key): _with_whole_characters(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_characters(item) for item in value]
    return value


class _Context:
    """What all turns of one record share."""

    def __init__(self, record: Record, source: Source, limits: Limits, line_number: int) -> None:
        message = record.get("message")
        self.record, self.source, self.limits, self.line_number = record, source, limits, line_number
        is_answer = record.get("type") == "assistant" and isinstance(message, Mapping)
        self.file = limits.name(source.file) or ""
        self.message_id = (
            limits.name(message.get("id")) if is_answer and isinstance(message, Mapping) else None
        )
        self.session_id = self.named("sessionId") or limits.name(source.session_id) or _stem(self.file)
        self.agent_id = (
            self.named("agentId")
            or limits.name(source.agent_id)
            or ("sidechain" if is_sidechain(record) else None)
        )
        self.said_at = _instant(record.get("timestamp"))

    def named(self, field: str) -> str | None:
        """Return an id, a path or a name that the record carries, without secrets; None if it has none."""
        return self.limits.name(self.record.get(field))

    def row(self, turn: ParsedTurn, block: int) -> TurnCells:
        """Return one row of TURNS, in the order of its columns."""
        utterance = turn.utterance
        text, tool_input, redactions = self._worded(utterance)
        make_id = self._turn_id if self.source.head is None else self._foreign_turn_id
        return (
            make_id(turn, text, block),
            self.source.project_id,
            self.session_id,
            self.agent_id,
            self.file,
            self.line_number,
            block,
            utterance.kind,
            self.said_at,
            text,
            self.message_id,
            # A queued prompt hangs on whatever record came before; it never begins a branch.
            None if utterance.is_queued else self.named("parentUuid"),
            self.limits.name(utterance.tool_name),
            self.limits.name(utterance.tool_use_id),
            tool_input,
            utterance.tool_status,
            "external" if utterance.is_external else TRUST_OF_KIND[utterance.kind],
            self.named("cwd"),
            self.named("gitBranch"),
            self.named("version"),
            redactions,
            READER_VERSION,
        )

    def _worded(self, utterance: Utterance) -> tuple[str, str | None, int]:
        if utterance.tool_input is not None:
            tool_input, text, redactions = redacted_input(
                utterance.tool_name or "", utterance.tool_input, self.limits
            )
            return text, tool_input, redactions
        if utterance.kind == "tool_result":
            text, redactions = redacted_ends(utterance.text, self.limits)
        else:
            text, redactions = redacted_head(utterance.text, self.limits)
        return text, None, redactions

    def _turn_id(self, turn: ParsedTurn, text: str, block: int) -> str:
        """
        Return an id that a resumed or forked copy of the record has too, in spite of its new uuids.

        Made from the redacted text, so that no hash of a secret is stored.
        """
        project_id, call_id = self.source.project_id, self.limits.name(turn.utterance.tool_use_id)
        kind = turn.utterance.kind
        if self.message_id:
            return content_id(project_id, kind, self.message_id, call_id or text)
        if call_id:
            return content_id(project_id, kind, call_id)
        when = self.named("timestamp") or self.named("uuid")
        place = () if when else (self.session_id, str(self.line_number), str(block))
        return content_id(project_id, kind, when or "", text, *place)

    def _foreign_turn_id(self, turn: ParsedTurn, text: str, block: int) -> str:
        """Return an id from the redacted text and the record's identity, or its place where it has none."""
        assert self.source.head is not None
        origin = (self.source.project_id, turn.utterance.kind, self.source.head.assistant)
        if call_id := self.limits.name(turn.utterance.tool_use_id):
            return content_id(*origin, call_id)
        if turn.identity is None:
            return content_id(*origin, text, self.session_id, str(self.line_number), str(block))
        return content_id(*origin, self.limits.name(turn.identity) or "", text)


def _turns(rows: list[TurnCells]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(TURNS.arrow)
    arrays = [
        pa.array(list(column), type=field.type) for column, field in zip(columns, TURNS.arrow, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=TURNS.arrow)


def _stem(file: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl")


def _instant(value: object) -> datetime | None:
    """Return an ISO 8601 instant in UTC; a time without a zone is taken as UTC."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
