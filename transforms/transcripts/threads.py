"""What several lines of a transcript say together: duplicates, rewound branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cortex.transforms.schemas import TURNS, Table

# Imported where it is used: it takes .1 s, which a run in which nothing is new can spare.
if TYPE_CHECKING:
    import polars as pl


def deduplicated(turns: pa.Table) -> pa.Table:
    """Take TURNS; return TURNS in file order with one row per turn_id, the first by (file, line, block)."""
    first = _frame(turns).sort("file", "line", "block", "turn_id").unique("turn_id", keep="first")
    return _table(first.sort("file", "line", "block", "turn_id"), TURNS)


def mark_rewound(turns: pa.Table) -> frozenset[str]:
    """
    Take TURNS; return the turn ids that a person went back behind.

    Two prompts of one session and file that follow the same record are a rewind: all from the earlier one
    up to the later one was withdrawn. Prompts that were queued, and words given in answer to a call,
    follow whatever record came before and never begin a branch; nor do slash commands, whose records
    share a parent in early versions. A resumed copy of a prompt is the same prompt.
    """

    import polars as pl

    rows = _frame(turns).sort("file", "line", "block", "turn_id").unique(["file", "turn_id"], keep="first")
    is_opening = (
        pl.col("kind").is_in(["prompt", "plan"])
        & pl.col("tool_use_id").is_null()
        & pl.col("agent_id").is_null()
        & pl.col("parent_uuid").is_not_null()
    )
    branches = (
        rows.filter(is_opening)
        .group_by("session_id", "file", "parent_uuid")
        .agg(first_line=pl.col("line").min(), last_line=pl.col("line").max())
        .filter(pl.col("first_line") < pl.col("last_line"))
    )
    withdrawn = rows.join(branches, on=["session_id", "file"]).filter(
        pl.col("line").ge(pl.col("first_line")) & pl.col("line").lt(pl.col("last_line"))
    )
    return frozenset(withdrawn["turn_id"])


def _frame(turns: pa.Table) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(turns)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _table(frame: pl.DataFrame, table: Table) -> pa.Table:
    """Return `frame` with the columns of `table`, in their order and with their types and meanings."""
    return frame.select(table.arrow.names).to_arrow().cast(table.arrow)
