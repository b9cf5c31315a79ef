"""What is told beside results: replies, commands and records of their sessions, and memories near them."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.recalling.recall_search import Evidence, Nearby, RecallResult, instant_of, question_of
from cortex.hooks.evidence.question import DECIDED, EVERYTHING, WORK, Asked, SearchQuestion
from cortex.hooks.evidence.search import HIDDEN_STATUSES, listed_records, listed_turns
from cortex.hooks.evidence.statements import asks_anything, is_known, statement_in
from cortex.hooks.evidence.text import PEOPLE_KINDS, prose
from cortex.hooks.prose.memory_types import SETTLING_TYPES, SHOWN_TYPES
from cortex.hooks.prose.own_prose import SHELL_TOOLS
from cortex.storage.tables.tables import Searchable
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import MEMORY_TYPES, Row, values
from cortex.transforms.search import SearchLimits
from cortex.transforms.words.ages import speaker_of, speaker_of_turn
from cortex.transforms.words.sentences import PROSE, sentences, words_in

# A reply comes within this many lines of its question: thinking and the client's notes lie between.
_REPLY_LINES = 12
# Less than that in addition to what is announced is "Good observation!".
_MIN_WORDS = 6
# A command longer than this is a script, and not what one types.
_COMMAND_CHARS = 200
# A command that answers a question by its words alone has this many of them.
_COMMAND_SHARE = 0.5
_PROSE = (*PEOPLE_KINDS, "text")
_IN_BACKTICKS = re.compile(r"`([\w./-]{2,40})")
_WORD = re.compile(r"[\w./-]{2,}")


def reply_to(line: int, turns: Sequence[Row], announces: re.Pattern[str]) -> Row | None:
    """
    Return what the assistant said next to what a person asked in a line; None if that asks nothing.

    Nor is there a reply where it only says what is done next, by how its sentences begin (`announces`).
    `turns` are those of one transcript, with kind, line and text, in their order.
    """
    turns = [turn for turn in turns if turn["kind"] in _PROSE]
    asked = [turn for turn in turns if turn["line"] == line and turn["kind"] in PEOPLE_KINDS]
    if not any(asks_anything(turn["text"]) for turn in asked):
        return None
    later = next((turn for turn in turns if turn["line"] > line), None)
    if later is None or later["kind"] != "text" or later["line"] > line + _REPLY_LINES:
        return None
    parts = sentences(" ".join(prose(later["text"]).split()), PROSE)
    says = " ".join(part for part in parts if not announces.search(part))
    return later if len(words_in(says)) >= _MIN_WORDS else None


def command_for(
    lines: Iterable[int], shown: str, turns: Sequence[Row], asked: Asked, within: int
) -> Row | None:
    """
    Return the call that ran the command which a question for the way to do something is after.

    `turns` are those of one transcript, in their order; `lines` those that a result rests on, `shown` its
    words. Looked at are commands that went well at most `within` lines away: the one right behind a line of
    the result, of a program that it names in backticks, or with half of the question's words; the best of
    these by all three, of equals the last.
    """
    places, named = frozenset(lines), frozenset(_IN_BACKTICKS.findall(shown))
    failed = {
        turn["tool_use_id"] for turn in turns if turn["tool_status"] in ("error", "rejected", "cancelled")
    }
    best, most = None, 0.0
    last_line_of_prose = -1
    for turn in turns:
        if turn["kind"] in _PROSE:
            last_line_of_prose = turn["line"]
        if not _is_command(turn) or turn["tool_use_id"] in failed:
            continue
        if not any(abs(turn["line"] - place) <= within for place in places):
            continue
        share = _share_within(f"{turn['text']} {_description(turn)}", asked)
        fit = (last_line_of_prose in places) + bool(named & set(_WORD.findall(turn["text"]))) + share
        if fit >= max(most, _COMMAND_SHARE):
            best, most = turn, fit
    return best


def _is_command(turn: Row) -> bool:
    return (
        turn["kind"] == "tool_call"
        and turn["tool_name"] in SHELL_TOOLS
        and len(turn["text"]) <= _COMMAND_CHARS
    )


def _share_within(text: str, asked: Asked) -> float:
    """Return the share of a question's words that a command has, also as parts of its words ("pytest")."""
    text, total = text.casefold(), sum(asked.weights.values())
    return sum(weight for word, weight in asked.weights.items() if word in text) / total if total else 0.0


def _description(turn: Row) -> str:
    """Return what the assistant says a call is for, "" where it says nothing."""
    try:
        given = json.loads(turn["tool_input"] or "{}")
    except ValueError:
        return ""
    return str(given.get("description") or "") if isinstance(given, dict) else ""


# -- Adds to results what is next to them in their sessions: the reply to a question, the command that was
# run.

# What is read of the turns of a session to see what was replied and run in it.
RUN_COLUMNS = [
    "turn_id", "session_id", "file", "line", "block", "kind", "text", "said_at", "tool_name", "tool_use_id",
    "tool_input", "tool_status",
]  # fmt: skip

# A turn is as long as a passage at most: what is shown of it is far shorter.
_TEXT_CHARS = 900

# Returns the turns of some sessions of a project with RUN_COLUMNS.
TurnsOf = Callable[[str, Collection[str]], Sequence[Row]]


def with_session_context(
    results: Sequence[RecallResult], question: str, policy: Policy, turns_of: TurnsOf
) -> list[RecallResult]:
    """
    Return results with the reply below what a person asks in them, and the command that was run.

    A command is looked for where the question asks for the way to do something. What one result shows is not
    shown below another. Apart from `recall`, since it reads the turns of the sessions that a question or a
    command is looked for in: the prompt has no time for that.
    """
    asking = question_of(question, policy)
    turns = _turns_near(results, turns_of, is_all=asking.asks_how)
    if not turns:
        return list(results)
    shown = {place for result in results for place in _turns_shown(result)}
    commands: set[str] = set()
    extended = []
    for result in results:
        nearby = _with_reply(result, turns, shown, asking)
        call = (
            _command_of(result, turns, asking, int(asking.settings.numbers["stretch_lines"]), commands)
            if asking.asks_how
            else []
        )
        extended.append(replace(result, nearby=(*call, *nearby)))
    return extended


def _turns_near(results: Sequence[RecallResult], turns_of: TurnsOf, *, is_all: bool) -> dict[str, list[Row]]:
    """Return by file the turns of the sessions in which something shown asks, or of all of them."""
    sessions: dict[str, set[str]] = {}
    for result in results:
        items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
        for item in items:
            if is_all or (item.kind == "turn" and asks_anything(item.text)):
                names = {place.session_id for place in item.evidence}
                sessions.setdefault(result.project_id, set()).update(names)
    turns: dict[str, list[Row]] = {}
    for scope, wanted in sorted(sessions.items()):
        for row in sorted(turns_of(scope, wanted), key=lambda row: (row["line"], row["block"])):
            turns.setdefault(row["file"], []).append(row)
    return turns


def _turns_shown(result: RecallResult) -> Iterator[tuple[str, int]]:
    """Yield where the turns stand that a result shows; further lines say the same."""
    items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
    for item in items:
        if item.kind == "turn" and item.evidence:
            yield item.evidence[0].file, item.evidence[0].lines[0]


def _with_reply(
    result: RecallResult, turns: dict[str, list[Row]], shown: set[tuple[str, int]], asking: SearchQuestion
) -> list[Nearby]:
    """Return what is near a result, and behind the first turn of a person that asks what was replied."""
    nearby = list(result.nearby)
    items: tuple[RecallResult | Nearby, ...] = (result, *result.nearby)
    for at, item in enumerate(items):
        if item.kind != "turn" or not item.evidence:
            continue
        place = item.evidence[0]
        reply = reply_to(place.lines[0], turns.get(place.file, ()), asking.settings.pattern("announces"))
        if reply is not None and (reply["file"], reply["line"]) not in shown:
            shown.add((reply["file"], reply["line"]))
            nearby.insert(at, _nearby(reply, statement_in(reply["text"], asking.asked)))
            break
    return nearby


def _command_of(
    result: RecallResult, run: dict[str, list[Row]], asking: SearchQuestion, within: int, shown: set[str]
) -> list[Nearby]:
    """Return the command that a result is about, if nothing above shows it."""
    words = " ".join([result.statement, result.quote, *(each.statement for each in result.nearby)])
    for item in result.evidence:
        call = command_for(item.lines, words, run.get(item.file, ()), asking.asked, within)
        if call is not None and call["text"] not in words and call["text"] not in shown:
            shown.add(call["text"])
            return [_nearby(call, f"Ran `{' '.join(call['text'].split())}`")]
    return []


def _nearby(row: Row, statement: str) -> Nearby:
    place = Evidence(row["session_id"], row["file"], (row["line"],), row["said_at"])
    return Nearby(row["turn_id"], "turn", None, row["text"][:_TEXT_CHARS], statement, (place,))


# -- What a question lists that names no subject, as results: for "what did we do last week", "what is open",
# "what was decided in sessions 5-8".


def listed_results(
    tables: Searchable, scopes: Sequence[str], limits: SearchLimits, kind: str, *, limit: int
) -> list[RecallResult]:
    """
    Return at most `limit` of what a question of this kind (LISTINGS) lists within the limits, newest first.

    Where no memory says what was done, or what there is, what was asked in the sessions is listed.
    """
    admits = None if limits.is_empty else limits.admits
    types = SETTLING_TYPES if kind == DECIDED else SHOWN_TYPES
    with tables.reading_index(scopes) as connection:
        rows = listed_records(connection, scopes, kind, types, limit=limit, admits=admits)
        if not rows and kind == WORK:
            rows = listed_records(connection, scopes, EVERYTHING, types, limit=limit, admits=admits)
        if rows or kind not in (WORK, EVERYTHING):
            return [_memory_result(row) for row in rows]
        turns = listed_turns(connection, scopes, limit=limit, admits=admits)
    return [_turn_result(row) for row in turns]


def _memory_result(row: Row) -> RecallResult:
    places = tuple(
        Evidence(item["session_id"], item["file"], tuple(item["lines"]), instant_of(item["said_at"]))
        for item in row["evidence"] or ()
    )
    own = {
        "id": row["memory_id"], "kind": "memory", "memory_type": row["memory_type"],
        "confidence": row["confidence"], "speaker": speaker_of(row), "status": row["status"],
        "slots": {name: row.get(name) for name in ("chosen", "rejected", "reason")},
    }  # fmt: skip
    reason, rejected = row.get("reason") or "", row.get("rejected") or ""
    more = {
        "why": "" if is_known(reason, row["text"]) else reason,
        "rejected": "" if is_known(rejected, row["text"]) else rejected,
    }
    return _listed_result(row, row["updated_at"], places, **own, **more)


def _turn_result(row: Row) -> RecallResult:
    at = instant_of(row["said_at"])
    place = Evidence(row["session_id"], row["file"], (row["line"],), at)
    own = {"id": row["passage_id"], "kind": "turn", "memory_type": None, "confidence": None}
    return _listed_result(row, row["said_at"], (place,), **own, speaker=speaker_of_turn(row), status="active")


def _listed_result(row: Row, at: int | None, places: tuple[Evidence, ...], **own: Any) -> RecallResult:
    return RecallResult(
        text=row["text"],
        project_id=row["project_id"],
        score=(at or 0) / 1e6,
        created_at=instant_of(at),
        evidence=places,
        trust=row["trust"],
        passage=None,
        statement=row["text"],
        **own,
    )


# -- Memories near those that were found, by the edges between memories.

_RELATED_COLUMNS = ["memory_id", "memory_type", "text", "status", "merged_into", "trust", "rank"]
MAX_RELATED = 10
# A description stands for its code.
NOT_CODE = {"memory_type": [name for name in MEMORY_TYPES if name != "code"]}


@dataclass(frozen=True)
class Related:
    """A memory some steps away from a match."""

    memory_id: str
    memory_type: str
    text: str
    distance: int


def related_to(matches: Sequence[RecallResult], tables: Searchable, *, depth: int) -> list[Related]:
    """Return at most MAX_RELATED memories within `depth` edges of the matches, nearest first."""
    # Imported here: DuckDB walks the links, and takes a tenth of a second to import.
    from cortex.transforms.memory.link import neighbourhood

    rows: list[tuple[int, float, Related]] = []
    for scope in sorted({result.project_id for result in matches if result.kind == "memory"}):
        ids = [result.id for result in matches if result.project_id == scope and result.kind == "memory"]
        edges = tables.open_index([scope], "edges").read(["source_id", "target_id"])
        reached = neighbourhood(edges, ids, depth=depth)
        distances = dict(zip(values(reached, "memory_id"), values(reached, "distance"), strict=True))
        for row in shown_memories(tables, scope, sorted(distances.keys() - set(ids))):
            distance = distances[row["memory_id"]]
            related = Related(row["memory_id"], row["memory_type"], row["text"], distance)
            rows.append((distance, -row["rank"], related))
    rows.sort(key=lambda row: (*row[:2], row[2].memory_id))
    return [related for _, _, related in rows[:MAX_RELATED]]


def shown_memories(tables: Searchable, scope: str, ids: list[str]) -> list[dict[str, Any]]:
    """Return the memories of these ids that recall may show."""
    if not ids:
        return []
    memories = tables.open_index([scope], "memories").read(_RELATED_COLUMNS, NOT_CODE)
    mine = memories.filter(pc.is_in(memories["memory_id"], pa.array(ids, pa.string())))
    return [
        row
        for row in mine.to_pylist()
        if row["status"] not in HIDDEN_STATUSES and row["merged_into"] is None and row["trust"] != "external"
    ]
