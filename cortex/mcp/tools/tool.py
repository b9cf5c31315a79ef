"""
How a tool is declared: what it is for, what it takes and gives, and arguments checked against that.

    @tool(
        "query",
        "Query the memory with SQL",
        "Run read-only SQL (DuckDB) on the memory.",
        takes=schemas.takes("sql", sql=schemas.text()),
        gives=schemas.gives(rows=schemas.STRING_LIST),
    )
    def answer_query(call: ToolCall) -> ToolReply: ...

A tool stands in a module of this folder; `make docs` prints the index by which clients list the tools.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cortex.mcp.protocol.access import READ
from cortex.mcp.protocol.call import ToolCall, ToolReply
from cortex.transforms.errors import ArgumentMissing, ArgumentOfWrongType, ArgumentOutOfRange, ArgumentUnknown
from cortex.transforms.vocabulary import STATUSES, TRUSTS

# -- What the schemas of tools are put together from.

Schema = dict[str, Any]

MAX_TEXT_LENGTH, MAX_QUERY_LENGTH, MAX_NAME_LENGTH = 2_000, 10_000, 400
# Of rows, matches, points and steps on one page.
MAX_ITEMS = 50
MAX_FILES = 10


def text(meaning: str = "", longest: int = MAX_NAME_LENGTH) -> Schema:
    """Return the schema of a text; that it may not be empty, and MAX_NAME_LENGTH, go without saying."""
    schema: Schema = {"type": "string"}
    if longest != MAX_NAME_LENGTH:
        schema["maxLength"] = longest
    return schema | ({"description": meaning} if meaning else {})


def takes(required: str, **properties: Schema) -> Schema:
    """Return the schema of arguments, of which one is required, or none if that is empty."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": [required]} if required else {})


def gives(**properties: Schema) -> Schema:
    """Return the schema of a structured answer."""
    return {"type": "object", "properties": {"notice": {"type": "string"}, **properties}}


def list_of(**properties: Schema) -> Schema:
    """Return the schema of a list of objects."""
    return {"type": "array", "items": {"type": "object", "properties": properties}}


STRING: Schema = {"type": "string"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
STRING_OR_NULL: Schema = {"type": ["string", "null"]}
STRING_LIST: Schema = {"type": "array", "items": STRING}
TRUST: Schema = {"enum": list(TRUSTS)}
ITEM_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS}
PROJECT = text()
CURSOR = text()
STATEMENTS = list_of(text=STRING, memory_ids=STRING_LIST)
OPTIONS = list_of(id=STRING, label=STRING)
NEAR = list_of(id=STRING, text=STRING)

MEMORY_FIELDS: Mapping[str, Schema] = {
    "id": STRING,
    "kind": {"enum": ["memory", "turn"]},
    "type": STRING_OR_NULL,
    "text": STRING,
    "trust": TRUST,
    "status": {"enum": list(STATUSES)},
    "project": STRING,
    "confidence": NUMBER_OR_NULL,
    "age": STRING,
    "doubt": STRING_OR_NULL,
    "evidence": list_of(
        session=STRING,
        number={"type": "integer"},
        file=STRING,
        lines={"type": "array", "items": {"type": "integer"}},
    ),
}


# -- How a tool is declared: what it is for, what it takes and gives; a model pays for every word of it.

# Behind every other stands a tool that names no place; several are sorted by name.
LAST_LISTED = 1_000

Answering = Callable[[ToolCall], ToolReply]


@dataclass(frozen=True)
class Tool:
    """
    One tool: `takes` and `gives` are the JSON schemas of its arguments and of its structured answer.

    A call needs `scope`, and where it has an argument of `scope_with`, the scope that stands there.
    """

    name: str
    title: str
    purpose: str
    takes: Schema
    gives: Schema
    answer: Answering
    scope: str = READ
    scope_with: Mapping[str, str] = field(default_factory=dict)
    is_destructive: bool = False
    place: int = LAST_LISTED

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
                "readOnlyHint": self.scope == READ and not self.scope_with,
                "destructiveHint": self.is_destructive,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }


# By name, of the modules that are imported.
DECLARED: dict[str, Tool] = {}


def tool(
    name: str,
    title: str,
    purpose: str,
    *,
    takes: Schema,
    gives: Schema,
    scope: str = READ,
    scope_with: Mapping[str, str] | None = None,
    is_destructive: bool = False,
    place: int = LAST_LISTED,
) -> Callable[[Answering], Answering]:
    """
    Declare what answers a tool.

    Raises ValueError if another tool has its name, or if a schema is none of an object.
    """

    def declare(answer: Answering) -> Answering:
        if {takes.get("type"), gives.get("type")} != {"object"}:
            raise ValueError(f"the tool '{name}' needs a schema of what it takes, and one of what it gives")
        known = DECLARED.get(name)
        if known and _home_of(known.answer) != _home_of(answer):
            raise ValueError(
                f"{_home_of(known.answer)} and {_home_of(answer)} both declare the tool '{name}'"
            )
        DECLARED[name] = Tool(
            name, title, purpose, takes, gives, answer, scope, dict(scope_with or {}), is_destructive, place
        )
        return answer

    return declare


def _home_of(answer: Answering) -> str:
    return f"{answer.__module__}.{answer.__qualname__}"


# -- Checks the arguments of a call against the schema of its tool; each kind of fault has a code.

_TYPES: Mapping[str, type[Any]] = {"string": str, "integer": int, "boolean": bool, "array": list}
_ARTICLES = {"integer": "an integer", "array": "a list", "string": "a string", "boolean": "true or false"}


def checked_arguments(tool: Tool, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """
    Return the arguments of a call of `tool`, texts without the spaces around them.

    Raises ArgumentMissing, ArgumentUnknown, ArgumentOfWrongType and ArgumentOutOfRange, which name it.
    """
    values = dict(arguments or {})
    properties = tool.takes["properties"]
    for name in values:
        if name not in properties:
            raise ArgumentUnknown(
                f"{tool.name} has no argument '{name[:40]}'.",
                f"It takes: {', '.join(properties)}.",
                name[:40],
            )
    for name in tool.takes.get("required", ()):
        if values.get(name) is None:
            raise ArgumentMissing(f"{tool.name} needs '{name}'.", f"Give {name}.", name)
    given = {name: value for name, value in values.items() if value is not None}
    return {name: _checked(name, value, properties[name]) for name, value in given.items()}


def _checked(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        if value not in schema["enum"]:
            shown = ", ".join(map(str, schema["enum"]))
            raise ArgumentOutOfRange(f"'{name}' is not one of those allowed.", f"Allowed: {shown}.", name)
        return value
    kind = schema["type"]
    if not _is_of(kind, value):
        raise ArgumentOfWrongType(
            f"'{name}' is of the wrong type: {type(value).__name__}.", f"Give {_ARTICLES[kind]}.", name
        )
    if kind == "string":
        return _checked_text(name, value, schema)
    if kind == "array":
        _check_size(name, len(value), 0, schema["maxItems"], "items")
        return [_checked(name, item, schema["items"]) for item in value]
    if kind == "integer":
        _check_size(name, value, schema["minimum"], schema["maximum"], "")
    return value


def _is_of(kind: str, value: Any) -> bool:
    is_truth = isinstance(value, bool)  # an int to Python
    return isinstance(value, _TYPES[kind]) and is_truth == (kind == "boolean")


def _checked_text(name: str, value: str, schema: Mapping[str, Any]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentOfWrongType(
            f"'{name}' is not text: it has half a character.", "Give text in UTF-8.", name
        ) from error
    text = value.replace("\0", " ").strip()
    _check_size(name, len(text), 1, schema.get("maxLength", MAX_NAME_LENGTH), "characters")
    return text


def _check_size(name: str, size: int, least: int, most: int, unit: str) -> None:
    if not least <= size <= most:
        has = f"has {size} {unit}" if unit else f"is {size}"
        raise ArgumentOutOfRange(
            f"'{name}' {has}.", f"Give {least} to {most}{f' {unit}' if unit else ''}.", name
        )
