"""The turns of one transcript from a position on; of copied turns the one in the first place counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run_report import QuarantinedLine
from cortex.hooks.private import is_below
from cortex.storage.staging.transcripts import PIECE_BYTES, START, Piece, Position, Transcript
from cortex.transforms.schemas import TURNS, as_polars, values
from cortex.transforms.transcripts.assistants import lines_of_document
from cortex.transforms.transcripts.records import Limits
from cortex.transforms.transcripts.transcript import (
    FILE_TOO_LONG,
    UNREAD_NAMED,
    Source,
    ToolNames,
    read_transcript,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl


# Why a line is not read: its writer has not ended it.
UNFINISHED = "last line is not finished yet"


@dataclass
class TurnsRead:
    """
    What one transcript gave from a position on; `read_to` is the byte behind the last line read.

    `is_partial` says that there is more to read behind it; `more` counts the lines set aside behind the first
    UNREAD_NAMED, by reason.
    """

    read_to: int
    turns: list[pa.Table] = field(default_factory=list)
    quarantined: list[QuarantinedLine] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    is_transcript: bool = False  # some line was an object of JSON
    is_partial: bool = False

    def add(self, piece: Piece, source: Source, limits: Limits | None, tools: ToolNames) -> None:
        """Read one piece."""
        if piece.overlong:
            self.quarantine(QuarantinedLine(source.file, piece.first_line, piece.overlong))
            self.read_to, self.lines = piece.start, self.lines + (not piece.is_last)
            return
        reading = read_transcript(
            piece.data, source=source, first_line=piece.first_line, limits=limits, tools=tools
        )
        for line in reading.unread:
            self.quarantine(QuarantinedLine(source.file, line.line, line.reason, line.count))
        if reading.consumed_bytes < len(piece.data):
            half = piece.first_line + reading.consumed_lines
            self.quarantine(QuarantinedLine(source.file, half, UNFINISHED))
        self.is_transcript = self.is_transcript or reading.is_transcript
        self.turns.append(_outside_excluded(reading.turns, limits))
        self.read_to = piece.start + reading.consumed_bytes
        self.lines += reading.consumed_lines

    def quarantine(self, line: QuarantinedLine) -> None:
        """Note a line that was not read, or count it."""
        if line.line is not None and len(self.quarantined) < UNREAD_NAMED:
            self.quarantined.append(line)
        else:
            self.more[line.reason] += line.count

    def all_quarantined(self, file: str) -> list[QuarantinedLine]:
        """Return the lines that were noted, then what was counted."""
        counted = [QuarantinedLine(file, None, reason, count) for reason, count in self.more.items()]
        return self.quarantined + counted


def read_turns(
    transcript: Transcript,
    source: Source,
    position: Position,
    limits: Limits | None = None,
    *,
    is_piece: bool = False,
) -> TurnsRead:
    """
    Read a transcript piece by piece, so that memory stays bounded.

    With `is_piece` the first piece alone, of one whose lines are appended.
    """
    if transcript.format == "document":
        return _read_document(transcript, source, limits)
    result = TurnsRead(position.byte)
    tools = ToolNames(lambda: _lines_before(transcript, position))
    for piece in transcript.pieces(position):
        result.add(piece, source, limits, tools)
        if is_piece and transcript.format == "lines" and not piece.is_last:
            result.is_partial = result.read_to < transcript.size
            break
    if transcript.format == "packed":  # a cursor counts the bytes of the file, and this one will not grow
        result.read_to = transcript.size
    return result


def _lines_before(transcript: Transcript, position: Position) -> Iterator[bytes]:
    """Yield the lines of what was read before; a packed transcript is always read from its start."""
    if transcript.format == "lines" and position.byte:
        for piece in transcript.pieces(START):
            if piece.start >= position.byte:
                return
            yield from piece.data[: position.byte - piece.start].split(b"\n")


def _read_document(transcript: Transcript, source: Source, limits: Limits | None) -> TurnsRead:
    """Read a chat that its assistant rewrites each time as a whole; its ids tell which turns are known."""
    if transcript.size > PIECE_BYTES:
        return TurnsRead(0, quarantined=[QuarantinedLine(source.file, None, FILE_TOO_LONG)])
    document = transcript.document()
    lines = lines_of_document(document, source.head) if source.head else None
    if lines is None:  # half written, perhaps: the whole of it is another file, and is staged again
        return TurnsRead(0, quarantined=[QuarantinedLine(source.file, None, "not JSON")])
    reading = read_transcript(lines, source=source, final=True, limits=limits)
    quarantined = [QuarantinedLine(source.file, a.line, a.reason, a.count) for a in reading.unread]
    turns = [_outside_excluded(reading.turns, limits)]
    return TurnsRead(len(document), turns, quarantined, lines=reading.consumed_lines, is_transcript=True)


def _outside_excluded(turns: pa.Table, limits: Limits | None) -> pa.Table:
    """Return the turns that were not said in an excluded folder."""
    if limits is None or not limits.excluded_folders:
        return turns
    # A turn names its folder without secrets.
    above = (*limits.excluded_folders, *filter(None, map(limits.name, limits.excluded_folders)))
    inside = [cwd for cwd in set(values(turns, "cwd")) if cwd and is_below(cwd, above)]
    return turns.filter(pc.invert(pc.is_in(turns["cwd"], pa.array(inside, pa.string()))))


# -- Where turns stand: of the copies in resumed and forked sessions the one in the first place counts.

# Imported where it is used: it takes .1 s, which a run in which nothing is new can spare.

# Where a turn stands; of copies of a turn the one in the first place counts.
PLACE = ["file", "line", "block"]


def unknown_turns(turns: pa.Table, known: pa.Table) -> pa.Table:
    """
    Return the rows of `turns` that are not in `known`, or stand at an earlier place than there.

    The earlier place wins whenever rows are read, so the lake says the same whichever copy of a
    resumed or forked session came first.
    """
    import polars as pl

    new, old = _places(turns).with_row_index("at"), _places(known)
    first = old.sort(PLACE).unique(subset="turn_id", keep="first").select("turn_id", known=pl.struct(PLACE))
    joined = new.join(first, on="turn_id", how="left", maintain_order="left")
    earlier = pl.struct(PLACE).struct.field("file") < pl.col("known").struct.field("file")
    same_file = pl.col("file") == pl.col("known").struct.field("file")
    earlier |= same_file & (pl.col("line") < pl.col("known").struct.field("line"))
    kept = joined.filter(pl.col("known").is_null() | earlier)["at"]
    return turns.take(kept.to_arrow()).cast(TURNS.arrow)


def touched_sessions(fresh: pa.Table, known: pa.Table) -> set[str]:
    """Return the sessions whose turns change: those of `fresh`, and those that held one of them until now."""
    moved = known.filter(pa.compute.is_in(known["turn_id"], fresh["turn_id"].combine_chunks()))
    return {*values(fresh, "session_id"), *values(moved, "session_id")}


def in_first_place(turns: pa.Table, known: pa.Table) -> pa.Table:
    """Return each of `turns` once, without those that stand earlier in another session (a fork's)."""
    import polars as pl

    rows = _places(turns).with_row_index("at")
    places = pl.concat([rows.drop("at"), _places(known)])
    first = places.sort(PLACE).unique(subset="turn_id", keep="first")
    kept = rows.join(first, on=["turn_id", *PLACE], how="semi").sort("turn_id", "at")
    kept = kept.unique(subset="turn_id", keep="first", maintain_order=True)
    return turns.take(kept["at"].to_arrow()).cast(TURNS.arrow)


def _places(rows: pa.Table) -> pl.DataFrame:
    """Return where turns stand, without their texts, of which each copy may be 100 MB."""
    return as_polars(rows.select(["turn_id", *PLACE]))
