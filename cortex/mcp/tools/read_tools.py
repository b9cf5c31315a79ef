"""The tools that look: `recall` and `query`."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from cortex.flows.operations.ask import listing, memory_details, recall, sql
from cortex.flows.operations.ask.memory_details import Expanded
from cortex.flows.operations.ask.recall import Recalled
from cortex.flows.operations.ask.sql import QueryLimits
from cortex.flows.recalling.recall_search import Evidence, Nearby, RecallResult
from cortex.mcp.protocol.call import (
    ALL,
    DECLINED,
    NOTICE,
    ChoiceQuestion,
    ListItem,
    Option,
    ToolCall,
    ToolReply,
    note,
    page_of,
    position_of,
    quoted,
    rows_that_fit,
)
from cortex.mcp.tools import tool as schemas
from cortex.mcp.tools.tool import tool
from cortex.transforms.schemas import Row
from cortex.transforms.words.ages import age_of, speaker_of, speaker_of_turn

RESULTS_SHOWN = 10
# Results looked for on every page: pages are cut out of one order.
RESULTS_RANKED = schemas.MAX_ITEMS + 1
# Of an id, in text and in structure.
FULL_CHARS = 4_000
OPTION_CHARS = 90
EVIDENCE_SHOWN, EVIDENCE_SHOWN_FULL = 1, 5
LINES_OF_EVIDENCE = 5


@tool(
    "recall",
    "Recall what is known",
    "Search this project's memory of past sessions: decisions, rejected options, gotchas, preferences. "
    "Ask before you decide or repeat work. Answers carry age, confidence, trust, evidence. "
    "An id as the question shows that entry whole.",
    takes=schemas.takes(
        "question",
        question=schemas.text(longest=schemas.MAX_TEXT_LENGTH),
        detail={"enum": ["short", "full"]},
        as_of=schemas.text("YYYY-MM-DD: as known that day"),
        limit=schemas.ITEM_LIMIT,
        project=schemas.PROJECT,
        cursor=schemas.CURSOR,
    ),
    gives=schemas.gives(
        results=schemas.list_of(
            **schemas.MEMORY_FIELDS,
            why=schemas.STRING_OR_NULL,
            rejected=schemas.STRING_OR_NULL,
            replaces=schemas.NEAR,
            nearby=schemas.NEAR,
        ),
        options=schemas.OPTIONS,
        cursor=schemas.STRING_OR_NULL,
    ),
    place=10,
)
def answer_recall(call: ToolCall) -> ToolReply:
    """Search the memory, or show the entry whose id is the question."""
    question = call.arguments["question"]
    whole = memory_details.expand(call.context, question, project=call.get("project"))
    if whole is not None:
        return _expanded(call, whole)
    subject = f"{question} {call.get('project')} {call.get('as_of')}"
    skip = position_of(call.get("cursor"), subject)
    limit = call.get("limit", RESULTS_SHOWN)
    recalled = recall.recall(
        call.context,
        question,
        project=call.get("project"),
        as_of=call.get("as_of"),
        limit=limit + 1,  # whether there are more
        skip=skip,
        depth=RESULTS_RANKED,
    )
    is_full = call.get("detail") == "full"
    options: list[Option] = []
    if is_full and len(question.split()) == 1 and len(recalled.matches) > 1 and not skip:
        options = _options(call, recalled.matches)
        choice = call.person.choose(ChoiceQuestion(f"Several memories match '{question}'. Which?", options))
        if choice not in (ALL, DECLINED, None):
            return answer_recall(ToolCall(call.context, {"question": choice}, call.person))
        is_full, options = choice == ALL, options if choice is None else []
    items = [_item(call, recalled, match, is_full) for match in recalled.matches]
    page = page_of(
        items, limit=limit, chars=call.chars, at=skip, subject=subject, more=len(recalled.matches) > limit
    )
    count = f"{len(page.items)} found" if page.items else "Nothing is known of this"
    data: dict[str, Any] = {"notice": NOTICE, "results": page.data, "cursor": page.cursor}
    if options:
        data["options"] = [each.as_dict() for each in options]
    heading = f"{count}." + (" Several match: call again with the id of one." if options else "")
    remarks = [each for each in (recalled.warning, recalled.note) if each]
    return ToolReply(data, "\n".join([page.text(heading), *remarks]))


def _options(call: ToolCall, matches: Sequence[RecallResult]) -> list[Option]:
    entries: list[RecallResult | Nearby] = []
    for match in matches:
        entries += [match, *match.nearby]
    shown = entries[: call.number("mcp_options") - 1]
    return [
        *(Option(entry.id[:12], quoted(entry.statement, OPTION_CHARS)) for entry in shown),
        Option(ALL, "All of them"),
    ]


def _item(call: ToolCall, recalled: Recalled, match: RecallResult, is_full: bool) -> ListItem:
    chars = call.excerpt * 3 if is_full else call.excerpt
    text, age = quoted(match.statement, chars), age_of(match.created_at, call.context.now)
    doubt = recalled.doubts.get(match.id)
    data: dict[str, Any] = {
        "id": match.id,
        "kind": match.kind,
        "type": match.memory_type,
        "text": text,
        "trust": match.trust,
        "status": match.status,
        "project": quoted(recalled.project_names.get(match.project_id, match.project_id), OPTION_CHARS),
        "confidence": None if match.confidence is None else round(match.confidence, 2),
        "age": age,
        "doubt": quoted(doubt.reason, chars) if doubt else None,
        "evidence": _evidence(
            match.evidence, EVIDENCE_SHOWN_FULL if is_full else EVIDENCE_SHOWN, recalled.session_numbers
        ),
        "why": quoted(match.why, chars) or None,
        "rejected": quoted(match.rejected, chars) or None,
        "replaces": [{"id": old.memory_id, "text": quoted(old.text, OPTION_CHARS)} for old in match.replaces],
        "nearby": [_near(each, chars // 2) for each in match.nearby],
    }
    sure = "" if match.confidence is None else f"confidence {match.confidence:.2f}"
    kind, name = match.memory_type or "said", f"id {match.id[:12]}"
    lines = [note(match.speaker, text, kind, f"{age} old", sure, name)]
    lines += [f'  {name}: "{data[name]}"' for name in ("why", "rejected") if data[name]]
    lines += [f'  in place of: "{old["text"]}" (id {old["id"][:12]})' for old in data["replaces"]]
    if doubt:
        lines.append(f"  doubted: {quoted(doubt.reason, chars)}")
    lines += [
        f'  {"earlier" if near["earlier"] else "near it"}: "{near["text"]}" (id {near["id"][:12]})'
        for near in data["nearby"]
    ]
    if is_full:
        lines += [f"  from {each['file']}:{each['lines']}" for each in _evidence(match.evidence, 2)]
    return ListItem(data, lines)


def _near(near: Nearby, chars: int) -> dict[str, Any]:
    return {
        "id": near.id,
        "kind": near.kind,
        "text": quoted(near.statement, chars),
        "earlier": near.is_earlier,
    }


def _evidence(
    evidence: Sequence[Evidence], most: int, numbers: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    return [
        {
            "session": each.session_id,
            **({"number": numbers[each.session_id]} if numbers and each.session_id in numbers else {}),
            "file": quoted(each.file, 200),
            "lines": list(each.lines[:LINES_OF_EVIDENCE]),
        }
        for each in evidence[:most]
    ]


def _expanded(call: ToolCall, whole: Expanded) -> ToolReply:
    item = whole_entry(call, whole)
    text = "\n".join(["1 found.", NOTICE, *item.lines])
    return ToolReply({"notice": NOTICE, "results": [item.data], "cursor": None}, text[: call.chars])


def whole_entry(call: ToolCall, whole: Expanded) -> ListItem:
    """Return a memory or turn with all that is kept of it."""
    return _whole_memory(call, whole) if whole.kind == "memory" else _whole_turn(call, whole)


def _whole_memory(call: ToolCall, whole: Expanded) -> ListItem:
    [row] = whole.rows
    doubt = listing.doubt_about(call.context, row)
    places = [
        Evidence(each["session_id"], each["file"], tuple(each["lines"]), each["said_at"])
        for each in row["evidence"] or ()
    ]
    more = {
        name: quoted(row[name], FULL_CHARS // 2)
        for name in ("reason", "rejected")
        if row.get(name) is not None
    }
    data = {
        "id": row["memory_id"],
        "kind": whole.kind,
        "type": row["memory_type"],
        "text": quoted(row["text"], FULL_CHARS),
        "trust": row["trust"],
        "status": row["status"],
        "project": quoted(whole.project, OPTION_CHARS),
        "confidence": round(row["confidence"], 2) if row.get("confidence") is not None else None,
        "age": age_of(row["created_at"], call.context.now),
        "doubt": quoted(doubt.reason, FULL_CHARS // 2) if doubt else None,
        "evidence": _evidence(places, EVIDENCE_SHOWN_FULL),
        "files": [quoted(name, 200) for name in row["files"][:LINES_OF_EVIDENCE]],
        **more,
    }
    lines = [note(speaker_of(row), data["text"], row["memory_type"], row["status"], f"id {row['memory_id']}")]
    lines += [f'  {name}: "{words}"' for name, words in more.items()]
    lines += [f"  doubted: {data['doubt']}"] if doubt else []
    lines += [f"  from {each['file']}:{each['lines']}" for each in data["evidence"]]
    return ListItem(data, lines)


def _whole_turn(call: ToolCall, whole: Expanded) -> ListItem:
    first: Row = whole.rows[0]
    text = quoted(" ".join(str(row["text"]) for row in whole.rows), FULL_CHARS)
    place = Evidence(first["session_id"], first["file"], (first["line"],), first["said_at"])
    data = {
        "id": first["passage_id"],
        "kind": whole.kind,
        "type": None,
        "text": text,
        "trust": first["trust"],
        "status": "active",
        "project": quoted(whole.project, OPTION_CHARS),
        "confidence": None,
        "age": age_of(first["said_at"], call.context.now),
        "doubt": None,
        "evidence": _evidence([place], 1),
    }
    return ListItem(data, [note(speaker_of_turn(first), text, "said", f"id {first['passage_id'][:12]}")])


@tool(
    "query",
    "Query the memory with SQL",
    "Run read-only SQL (DuckDB) on the memory: counts, timelines. Tables: "
    "memories, edges, sessions, projects, metrics, events, turns, passages, tool_calls, journal, calls. "
    "`describe memories` shows columns.",
    takes=schemas.takes(
        "sql",
        sql=schemas.text(longest=schemas.MAX_QUERY_LENGTH),
        limit={"type": "integer", "minimum": 1, "maximum": 200},
    ),
    gives=schemas.gives(
        columns=schemas.STRING_LIST,
        rows={"type": "array", "items": {"type": "array"}},
        is_cut={"type": "boolean"},
    ),
    place=20,
)
def answer_query(call: ToolCall) -> ToolReply:
    """Run a read-only query on the tables of the scopes that the caller sees."""
    most = call.number("mcp_query_rows")
    limits = QueryLimits(
        rows=min(call.get("limit", most), most),
        seconds=call.number("mcp_query_seconds"),
        memory_mib=call.number("mcp_query_memory_mib"),
    )
    result = sql.query_tables(call.context, call.arguments["sql"], limits=limits)
    columns = [quoted(name, OPTION_CHARS) for name in result.columns]
    # The text repeats the rows: half of the room each.
    rows, is_cut = rows_that_fit(result.rows, call.chars - len(str(columns)), _cell)
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
    left_out = " More were left out: ask for fewer or for an aggregate." if is_cut or result.is_cut else ""
    lines = [f"{count}.{left_out}", NOTICE, " | ".join(columns)]
    lines += [" | ".join(_shown(cell) for cell in row) for row in rows]
    data = {"notice": NOTICE, "columns": columns, "rows": rows, "is_cut": is_cut or result.is_cut}
    return ToolReply(data, "\n".join(lines)[: call.chars])


def _cell(value: Any) -> Any:
    """Return a value of DuckDB as JSON takes it; text is quoted data too."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else None
        case Decimal():
            return float(value)
        case str():
            return quoted(value, FULL_CHARS)
        case datetime() | date():
            return value.isoformat()
        case Mapping():
            return {quoted(str(key), OPTION_CHARS): _cell(each) for key, each in value.items()}
        case list() | tuple():
            return [_cell(each) for each in value]
        case _:
            return quoted(str(value), FULL_CHARS)


def _shown(cell: Any) -> str:
    return "" if cell is None else str(cell)
