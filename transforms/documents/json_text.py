"""A JSON file that a person also edits: read it strictly, write it back laid out as it was."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from cortex.transforms.errors import ClientSettingsUnusable

Json = dict[str, Any]


def parsed(text: str) -> Json:
    """
    Return the object that `text` holds.

    Raises ClientSettingsUnusable for what would not come back as it was: comments, trailing commas, a byte
    order mark, the same key twice, numbers that are none.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_each_key_once, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise unusable(f"it is not plain JSON: {error}") from error
    if not isinstance(value, dict):
        raise unusable("it holds no JSON object")
    return value


def dumped(value: Json, like: str) -> str:
    r"""
    Return `value` as JSON with the indentation, line ends, separators and edges of the text `like`.

    A text that `json.dumps` could have written comes back byte for byte; another one is laid out evenly.

    >>> dumped({"a": 1, "b": [2]}, like='{\n\t"a": 1\n}\n')
    '{\n\t"a": 1,\n\t"b": [\n\t\t2\n\t]\n}\n'
    >>> dumped({"a": 1, "b": [2]}, like='{"a":1}')
    '{"a":1,"b":[2]}'
    """
    body = like.strip()
    before, _, after = like.partition(body)
    is_compact = body == _written(parsed(like), None, like, is_compact=True) != "{}"
    text = _written(value, _indent_of(body), like, is_compact=is_compact)
    return before + (text.replace("\n", "\r\n") if "\r\n" in like else text) + after


def is_same(value: Json, other: Json) -> bool:
    """Return whether two objects hold the same in the same order; 1, 1.0 and true are three things."""
    return json.dumps(value) == json.dumps(other)


def _indent_of(body: str) -> str | None:
    """Return one step of indentation; None for JSON on one line, two spaces for an empty object."""
    if re.fullmatch(r"\{\s*\}", body):
        return "  "
    indented = re.search(r"\n([ \t]+)\S", body)
    return indented[1] if indented else "" if "\n" in body else None


def _written(value: Json, indent: str | None, like: str, *, is_compact: bool) -> str:
    separators = (",", ":") if is_compact else None
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=like.isascii())
    if any(0xD800 <= ord(character) < 0xE000 for character in text):  # no file can hold half a pair
        return json.dumps(value, indent=indent, separators=separators)
    return text


def _each_key_once(pairs: Iterable[tuple[str, Any]]) -> Json:
    listed = list(pairs)
    value = dict(listed)
    if len(value) < len(listed):
        twice = next(key for number, (key, _) in enumerate(listed) if key in dict(listed[:number]))
        raise ValueError(f"the key '{twice}' is there twice")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def unusable(problem: str) -> ClientSettingsUnusable:
    """Return the error that says what keeps the file from being edited."""
    return ClientSettingsUnusable(
        f"the client's settings file was left as it is: {problem}.", "Correct the file and try again."
    )
