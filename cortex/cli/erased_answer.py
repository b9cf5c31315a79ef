"""What answers of commands that erase have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortex.cli.answer import Answer

if TYPE_CHECKING:
    from cortex.flows.operations.change.copies import Copies

NOTHING_FORGOTTEN = Answer({"forgotten": False}, ["Nothing forgotten."])


def copies_lines(copies: Copies) -> list[str]:
    """Return lines that name what was reached, where there is more than the store, and what was not."""
    reached = [f"Erased from: {each}." for each in copies.reached] if len(copies.reached) > 1 else []
    return [*reached, *(f"Still in: {each}." for each in copies.left)]


def copies_data(copies: Copies) -> dict[str, object]:
    """Return them as data."""
    return {"copies_left": list(copies.left), "copies_reached": list(copies.reached)}
