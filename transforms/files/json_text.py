"""Edits JSON as text: finds, adds and cuts parts by their place, so that all other bytes stay as they are."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from cortex.transforms.errors import ClientSettingsUnusable

Json = dict[str, Any]

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Change:
    """`put` stands where `was` stood; to take it back is to put `was` there again."""

    was: str
    put: str


@dataclass(frozen=True)
class Edited:
    """The new text, and the changes that led to it, in their order."""

    text: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Part:
    """A member of an object or an element of a list; `start` is that of the key where there is one."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True)
class Style:
    """How the file is laid out: its line end (empty: all on one line) and one step of indentation."""

    line_end: str
    step: str


def parsed(text: str) -> Json:
    """
    Return the settings that `text` holds.

    Raises ClientSettingsUnusable for what is no plain JSON object: comments, trailing commas, a byte order
    mark, the same key twice.
    """
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise unusable(f"it is not plain JSON: {error}") from error
    if not isinstance(value, dict):
        raise unusable("it holds no JSON object")
    return value


def with_part(
    text: str, container: int, item: str, level: int, style: Style, changes: list[Change]
) -> Edited:
    """Add `item` as the last part of the container that begins at `container`; note the change."""
    parts = parts_of(text, container)
    indented = style.line_end + style.step * level
    if parts:
        at, put = parts[-1].end, "," + (indented or " ") + item
    else:
        at, put = container + 1, indented + item + (style.line_end + style.step * (level - 1))
    changes.append(Change(was="", put=put))
    return Edited(text[:at] + put + text[at:], tuple(changes))


def without_part(text: str, container: int, value: int) -> str:
    """Remove the part whose value begins at `value`, with the comma that it leaves over."""
    parts = parts_of(text, container)
    [position] = [number for number, part in enumerate(parts) if part.value == value]
    if len(parts) == 1:
        return text[: container + 1] + text[_past_space(text, parts[0].end) :]
    if position == 0:
        return text[: parts[0].start] + text[parts[1].start :]
    return text[: parts[position - 1].end] + text[parts[position].end :]


def parts_of(text: str, container: int) -> list[Part]:
    """Return the parts of the object or list that begins at `container`, of text known to be JSON."""
    is_object, at, parts = text[container] == "{", _past_space(text, container + 1), list[Part]()
    while text[at] not in "}]":
        start, key = at, ""
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _past_space(text, _past_space(text, at) + 1)  # the colon
        _, end = _DECODER.raw_decode(text, at)
        parts.append(Part(key, start, at, end))
        at = _past_space(text, end)
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return parts


def member_of(text: str, container: int, key: str) -> Part | None:
    """Return the member `key` of the object that begins at `container`."""
    return next((part for part in parts_of(text, container) if part.key == key), None)


def value_of(text: str, part: Part) -> Any:
    """Return what a part holds."""
    return _DECODER.raw_decode(text, part.value)[0]


def root_of(text: str) -> int:
    """Return where the outermost value begins."""
    return _past_space(text, 0)


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def style_of(text: str) -> Style:
    """Return the layout of `text`, by its first indented line; two spaces where nothing tells."""
    line = re.search(r"(\r?\n)([ \t]+)\S", text)
    if line:
        return Style(line[1], line[2])
    line_end = re.search(r"\r?\n", text.strip()) or re.fullmatch(r"\s*\{\s*\}(\r?\n)?\s*", text)
    return Style("\r\n" if "\r\n" in text else "\n", "  ") if line_end else Style("", "")


def pair(key: str, value: object, level: int, style: Style) -> str:
    """Return a member of an object, to stand `level` steps in."""
    return f"{as_json(key)}: {rendered(value, level, style)}"


def rendered(value: object, level: int, style: Style) -> str:
    """Return `value` as JSON in the file's own layout, to stand `level` steps in."""
    if not style.line_end:
        return as_json(value)
    told = json.dumps(value, ensure_ascii=False, indent=style.step)
    return told.replace("\n", style.line_end + style.step * level)


def as_json(value: object) -> str:
    """Return `value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _each_key_once(pairs: Iterable[tuple[str, Any]]) -> Json:
    listed = list(pairs)
    found = dict(listed)
    if len(found) < len(listed):
        twice = next(key for number, (key, _) in enumerate(listed) if key in dict(listed[:number]))
        raise ValueError(f"the key '{twice}' is there twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def unusable(problem: str) -> ClientSettingsUnusable:
    """Return the error that says what keeps the file from being edited."""
    return ClientSettingsUnusable(
        f"the client's settings file was left as it is: {problem}.", "Mend that in the file and try again."
    )
