"""Reads files of labels: one JSON object a line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from cortex.transforms.errors import NotFound, UsageError

T = TypeVar("T")


def rows_of(path: Path, row_of: Callable[[object, str], T]) -> Iterator[T]:
    """
    Yield what `row_of` makes of the value of each line that is not empty and of its place, in words.

    Raises NotFound for a missing file, UsageError for one that cannot be read, or what `row_of` raises.
    """
    for number, line in lines_of(path):
        where = f"{path} line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where} is not JSON: {error}.", "Each line must be a JSON object.") from error
        yield row_of(value, where)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that is not empty with its number, from 1. Raises as `rows_of`."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}.", "Name a file of one JSON object a line.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Name a file of UTF-8 text.") from error
