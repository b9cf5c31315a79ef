"""What the schemas of tools are put together from."""

from collections.abc import Mapping
from typing import Any

from cortex.transforms.vocabulary import STATUSES, TRUSTS

Schema = dict[str, Any]

LONGEST_TEXT, LONGEST_QUERY, LONGEST_NAME = 2_000, 10_000, 400
# Of rows, matches, points and steps on one page.
MOST_ITEMS = 50
MOST_FILES = 10


def text(meaning: str = "", longest: int = LONGEST_NAME) -> Schema:
    """Return the schema of a text; that it may not be empty, and LONGEST_NAME, go without saying."""
    schema: Schema = {"type": "string"}
    if longest != LONGEST_NAME:
        schema["maxLength"] = longest
    return schema | ({"description": meaning} if meaning else {})


def takes(required: str, **properties: Schema) -> Schema:
    """Return the schema of arguments, of which one is required, or none where that is empty."""
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
ITEM_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS}
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
    "evidence": list_of(session=STRING, file=STRING, lines={"type": "array", "items": {"type": "integer"}}),
}
