"""Where turns stand: of the copies in resumed and forked sessions the one in the first place counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cortex.storage.lake.lake import each_key_once
from cortex.transforms.schemas import TURNS, values

# Imported where it is used: it takes .1 s, which a run in which nothing is new can spare.
if TYPE_CHECKING:
    import polars as pl

# Where a turn stands; of copies of a turn the one in the first place counts.
PLACE = ["file", "line", "block"]


def unknown_turns(turns: pa.Table, known: pa.Table) -> pa.Table:
    """
    Return the rows of `turns` that are not in `known`, or stand at an earlier place than there.

    The earlier place wins whenever rows are read, so the lake says the same whichever copy of a
    resumed or forked session came first.
    """

    import polars as pl

    new, old = _frame(turns), _frame(known)
    first = old.sort(PLACE).unique(subset="turn_id", keep="first").select("turn_id", known=pl.struct(PLACE))
    joined = new.join(first, on="turn_id", how="left", maintain_order="left")
    earlier = pl.struct(PLACE).struct.field("file") < pl.col("known").struct.field("file")
    same_file = pl.col("file") == pl.col("known").struct.field("file")
    earlier |= same_file & (pl.col("line") < pl.col("known").struct.field("line"))
    kept = joined.filter(pl.col("known").is_null() | earlier).drop("known")
    return kept.to_arrow().cast(TURNS.arrow)


def touched_sessions(fresh: pa.Table, known: pa.Table) -> set[str]:
    """Return the sessions whose turns change: those of `fresh`, and those that held one of them until now."""
    moved = known.filter(pa.compute.is_in(known["turn_id"], fresh["turn_id"].combine_chunks()))
    return {*values(fresh, "session_id"), *values(moved, "session_id")}


def in_first_place(turns: pa.Table, known: pa.Table) -> pa.Table:
    """Return each of `turns` once, without those that stand earlier in another session (a fork's)."""

    import polars as pl

    rows = _frame(turns)
    places = pl.concat([rows.select("turn_id", *PLACE), _frame(known).select("turn_id", *PLACE)])
    first = places.sort(PLACE).unique(subset="turn_id", keep="first")
    kept = rows.join(first, on=["turn_id", *PLACE], how="semi")
    return each_key_once(TURNS, kept.to_arrow().cast(TURNS.arrow))


def _frame(rows: pa.Table) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame
