"""What several lines of a transcript say together: duplicates, rewound branches, calls with their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cortex.hooks.prose.sources import EXTERNAL_TOOL_PREFIX, EXTERNAL_TOOLS
from cortex.transforms.schemas import TURNS, UTC_US, Table, column

# Imported where it is used: it takes .1 s, which a run in which nothing is new can spare.
if TYPE_CHECKING:
    import polars as pl

OUTCOMES = Table(
    name="tool_outcomes",
    version=1,
    key=("call_turn_id",),
    columns=(
        column("call_turn_id", pa.string(), "turn of the call"),
        column(
            "result_turn_id",
            pa.string(),
            "turn of its result; null while it runs or where cut",
            null=True,
        ),
        column("project_id", pa.string(), "project of the session"),
        column("session_id", pa.string(), "session of the call"),
        column("agent_id", pa.string(), "subagent that called, if any", null=True),
        column("tool_use_id", pa.string(), "pairs the two", null=True),
        column("tool_name", pa.string(), "tool that was called", null=True),
        column("argument", pa.string(), "salient argument of the call"),
        column("tool_input", pa.string(), "input as JSON, redacted, long values cut", null=True),
        column("tool_status", pa.string(), "one of TOOL_STATUSES; null without a result", null=True),
        column("result_text", pa.string(), "what came back, redacted and cut", null=True),
        column("trust", pa.string(), "trust of what came back: tool or external"),
        column("file", pa.string(), "path of the transcript as it was staged"),
        column("line", pa.int32(), "line of the call, from 1"),
        column("block", pa.int16(), "position of the call within its line, from 0"),
        column("result_line", pa.int32(), "line of the result, from 1", null=True),
        column("said_at", UTC_US, "when the call was made", null=True),
        column("answered_at", UTC_US, "when the result came", null=True),
        column("cwd", pa.string(), "working directory of the call", null=True),
        column("git_branch", pa.string(), "branch at the call", null=True),
    ),
)


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


def tool_outcomes(turns: pa.Table) -> pa.Table:
    """
    Take TURNS; return OUTCOMES, one row per call in file order, joined with the first result of its id.

    Ids pair within a project only. A call without a result has null result columns; results without a
    call (a cut start, a subagent's) are left out.
    """

    import polars as pl

    rows = _frame(deduplicated(turns))
    pair = ["project_id", "tool_use_id"]
    results = (
        rows.filter(pl.col("kind") == "tool_result")
        .unique(pair, keep="first", maintain_order=True)
        .select(
            *pair,
            "tool_status",
            result_turn_id="turn_id",
            result_text="text",
            result_trust="trust",
            result_line="line",
            answered_at="said_at",
        )
    )
    calls = rows.filter(pl.col("kind") == "tool_call").drop("tool_status", "trust")
    name = pl.col("tool_name").fill_null("")
    # The name stands on the call's line, not on the result's.
    is_external = (
        (pl.col("result_trust") == "external").fill_null(False)
        | name.is_in(EXTERNAL_TOOLS)
        | name.str.starts_with(EXTERNAL_TOOL_PREFIX)
    )
    joined = calls.join(results, on=pair, how="left").with_columns(
        call_turn_id="turn_id",
        argument="text",
        trust=pl.when(is_external).then(pl.lit("external")).otherwise(pl.lit("tool")),
    )
    return _table(joined.sort("file", "line", "block", "call_turn_id"), OUTCOMES)


def _frame(turns: pa.Table) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(turns)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _table(frame: pl.DataFrame, table: Table) -> pa.Table:
    """Return `frame` with the columns of `table`, in their order and with their types and meanings."""
    return frame.select(table.arrow.names).to_arrow().cast(table.arrow)
