"""The six tools: what each is for, what it takes and gives; a model pays for every word of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cortex.hooks.prose.memory_types import FACT_TYPES
from cortex.transforms.vocabulary import STATUSES, TRUSTS

Schema = dict[str, Any]

LONGEST_TEXT, LONGEST_QUERY, LONGEST_NAME = 2_000, 10_000, 400
# Of rows, matches, points and steps on one page.
MOST_ITEMS = 50
MOST_FILES = 10


@dataclass(frozen=True)
class Tool:
    """One tool: `takes` and `gives` are the JSON schemas of its arguments and of its structured answer."""

    name: str
    title: str
    purpose: str
    takes: Schema
    gives: Schema
    only_reads: bool = True

    def as_dict(self) -> Schema:
        """Return the tool as the protocol lists it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.purpose,
            "inputSchema": self.takes,
            "outputSchema": self.gives,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.only_reads,
                "destructiveHint": False,  # what is merged or learned can be taken back
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }


def _text(meaning: str = "", longest: int = LONGEST_NAME) -> Schema:
    """Return the schema of a text; that it may not be empty, and LONGEST_NAME, go without saying."""
    schema: Schema = {"type": "string"}
    if longest != LONGEST_NAME:
        schema["maxLength"] = longest
    return schema | ({"description": meaning} if meaning else {})


def _takes(required: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": [required]} if required else {})


def _gives(**properties: Schema) -> Schema:
    return {"type": "object", "properties": {"notice": {"type": "string"}, **properties}}


def _list_of(**properties: Schema) -> Schema:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


_STRING: Schema = {"type": "string"}
_NUMBER: Schema = {"type": ["number", "null"]}
_MAYBE: Schema = {"type": ["string", "null"]}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_TRUST: Schema = {"enum": list(TRUSTS)}
_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS}
_PROJECT = _text()
_CURSOR = _text()
_STATEMENTS = _list_of(text=_STRING, memory_ids=_STRINGS)
_OPTIONS = _list_of(id=_STRING, label=_STRING)
_NEAR = _list_of(id=_STRING, text=_STRING)

_MEMORY: Mapping[str, Schema] = {
    "id": _STRING,
    "kind": {"enum": ["memory", "turn"]},
    "type": _MAYBE,
    "text": _STRING,
    "trust": _TRUST,
    "status": {"enum": list(STATUSES)},
    "project": _STRING,
    "confidence": _NUMBER,
    "age": _STRING,
    "doubt": _MAYBE,
    "evidence": _list_of(
        session=_STRING, file=_STRING, lines={"type": "array", "items": {"type": "integer"}}
    ),
}

TOOLS = (
    Tool(
        "recall",
        "Recall what is known",
        "Search this project's memory of past sessions: decisions, rejected options, gotchas, preferences. "
        "Ask before you decide or repeat work. Answers carry age, confidence, trust, evidence. "
        "An id as the question shows that entry whole.",
        _takes(
            "question",
            question=_text(longest=LONGEST_TEXT),
            detail={"enum": ["short", "full"]},
            as_of=_text("YYYY-MM-DD: as known that day"),
            limit=_LIMIT,
            project=_PROJECT,
            cursor=_CURSOR,
        ),
        _gives(
            results=_list_of(**_MEMORY, why=_MAYBE, rejected=_MAYBE, replaces=_NEAR, nearby=_NEAR),
            options=_OPTIONS,
            cursor=_MAYBE,
        ),
    ),
    Tool(
        "query",
        "Query the memory with SQL",
        "Run read-only SQL (DuckDB) on the memory: counts, timelines. Tables: "
        "memories, edges, sessions, projects, metrics, events, turns, passages, tool_calls, journal, calls. "
        "`describe memories` shows columns.",
        _takes(
            "sql", sql=_text(longest=LONGEST_QUERY), limit={"type": "integer", "minimum": 1, "maximum": 200}
        ),
        _gives(
            columns=_STRINGS, rows={"type": "array", "items": {"type": "array"}}, is_cut={"type": "boolean"}
        ),
    ),
    Tool(
        "reflect",
        "Reflect on what is unsettled",
        "List what is open, contradictory or stale in this project; with a question, also an answer that "
        "cites memories.",
        _takes("", question=_text(longest=LONGEST_TEXT), limit=_LIMIT, project=_PROJECT, cursor=_CURSOR),
        _gives(
            points=_list_of(
                kind={"enum": ["open", "contradictory", "stale"]},
                texts=_STRINGS,
                reason=_STRING,
                memory_ids=_STRINGS,
                project=_STRING,
            ),
            answer=_STATEMENTS,
            source=_STRING,
            note=_STRING,
            cursor=_MAYBE,
        ),
    ),
    Tool(
        "infer",
        "Infer why something is so",
        "Explain why code or a design is as it is: the chain of decisions about a file path, subject or "
        "memory id, with reasons and rejected options.",
        _takes(
            "target",
            target=_text(),
            all={"type": "boolean", "description": "every match, if the target means several"},
            limit=_LIMIT,
            project=_PROJECT,
        ),
        _gives(
            chain=_list_of(
                id=_STRING,
                type=_STRING,
                text=_STRING,
                reason=_STRING,
                rejected=_STRING,
                trust=_TRUST,
                status={"enum": list(STATUSES)},
                said_on=_STRING,
                relations=_list_of(relation=_STRING, id=_STRING),
            ),
            narrative=_STATEMENTS,
            source=_STRING,
            note=_STRING,
            options=_OPTIONS,
        ),
    ),
    Tool(
        "learn",
        "Learn a lesson for good",
        "Store one durable fact: a sentence that stands alone and says what holds, of "
        "what, and why. Saved only if an id comes back. Refused: questions, filler, secrets; against a "
        "decision only if the person agrees.",
        _takes(
            "text",
            text=_text(longest=LONGEST_TEXT),
            type={"enum": list(FACT_TYPES)},
            evidence={
                "type": "array",
                "items": _text(),
                "maxItems": MOST_FILES,
                "description": "files that show it",
            },
            everywhere={"type": "boolean", "description": "holds in every project"},
        ),
        _gives(
            id=_STRING,
            outcome={"enum": ["learned", "reinforced", "reworded"]},
            type=_STRING,
            text=_STRING,
            project=_STRING,
            contradicts=_STRINGS,
            in_effect={"type": "boolean"},
            note=_STRING,
        ),
        only_reads=False,
    ),
    Tool(
        "consolidate",
        "Consolidate duplicates",
        "Plan the merging of memories that say the same; changes nothing and returns a plan id. Called with "
        "that plan, carries out exactly it. Originals are kept.",
        _takes("", plan=_text("id of a plan that was shown")),
        _gives(
            plan=_STRING,
            merges=_list_of(id=_STRING, project=_STRING, text=_STRING, members=_STRINGS, texts=_STRINGS),
            is_done={"type": "boolean"},
            in_effect={"type": "boolean"},
            note=_STRING,
        ),
        only_reads=False,
    ),
)

TOOL_BY_NAME = {tool.name: tool for tool in TOOLS}
