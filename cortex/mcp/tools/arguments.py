"""Checks the arguments of a call against the schema of its tool; each kind of fault has a code."""

from collections.abc import Mapping
from typing import Any

from cortex.mcp.tools.schemas import LONGEST_NAME
from cortex.mcp.tools.tool import Tool
from cortex.transforms.errors import (
    ArgumentMissing,
    ArgumentOfWrongType,
    ArgumentOutOfRange,
    ArgumentUnknown,
)

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
    _check_size(name, len(text), 1, schema.get("maxLength", LONGEST_NAME), "characters")
    return text


def _check_size(name: str, size: int, least: int, most: int, unit: str) -> None:
    if not least <= size <= most:
        has = f"has {size} {unit}" if unit else f"is {size}"
        raise ArgumentOutOfRange(
            f"'{name}' {has}.", f"Give {least} to {most}{f' {unit}' if unit else ''}.", name
        )
