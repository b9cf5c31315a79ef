"""The turns of one transcript from a position on; unusable lines are named with their reason."""

from dataclasses import dataclass, field

import pyarrow as pa

from cortex.flows.context.run_report import QuarantinedLine
from cortex.storage.staging.transcripts import (
    PIECE_BYTES,
    Piece,
    Position,
    Transcript,
)
from cortex.transforms.transcripts.assistants import lines_of_document
from cortex.transforms.transcripts.transcript import Source, read_transcript
from cortex.transforms.transcripts.turn_text import Limits


@dataclass
class TurnsRead:
    """What one transcript gave from a position on; `read_to` is the byte behind the last line read."""

    read_to: int
    turns: list[pa.Table] = field(default_factory=list)
    quarantined: list[QuarantinedLine] = field(default_factory=list)
    lines: int = 0
    is_transcript: bool = False  # some line was an object of JSON

    def add(self, piece: Piece, source: Source, limits: Limits | None) -> None:
        """Read one piece."""
        if piece.overlong:
            self.quarantined.append(QuarantinedLine(source.file, piece.first_line, "line too long"))
            self.read_to, self.lines = piece.start, self.lines + (not piece.is_last)
            return
        reading = read_transcript(piece.data, source=source, first_line=piece.first_line, limits=limits)
        self.quarantined += [QuarantinedLine(source.file, line.line, line.reason) for line in reading.unread]
        if reading.consumed_bytes < len(piece.data):
            half = piece.first_line + reading.consumed_lines
            self.quarantined.append(QuarantinedLine(source.file, half, "last line is not finished yet"))
        if not self.is_transcript:
            written = sum(1 for line in piece.data[: reading.consumed_bytes].split(b"\n") if line.strip())
            self.is_transcript = reading.turns.num_rows > 0 or len(reading.unread) < written
        self.turns.append(reading.turns)
        self.read_to = piece.start + reading.consumed_bytes
        self.lines += reading.consumed_lines


def read_turns(
    transcript: Transcript, source: Source, position: Position, limits: Limits | None = None
) -> TurnsRead:
    """Read a transcript piece by piece, so that memory stays bounded."""
    if transcript.format == "document":
        return _read_document(transcript, source, limits)
    result = TurnsRead(position.byte)
    for piece in transcript.pieces(position):
        result.add(piece, source, limits)
    if transcript.format == "packed":  # a cursor counts the bytes of the file, and this one will not grow
        result.read_to = transcript.size
    return result


def _read_document(transcript: Transcript, source: Source, limits: Limits | None) -> TurnsRead:
    """Read a chat that its assistant rewrites each time as a whole; its ids tell which turns are known."""
    if transcript.size > PIECE_BYTES:
        return TurnsRead(0, quarantined=[QuarantinedLine(source.file, None, "file too long")])
    document = transcript.document()
    lines = lines_of_document(document, source.head) if source.head else None
    if lines is None:  # half written, perhaps: the whole of it is another file, and is staged again
        return TurnsRead(0, quarantined=[QuarantinedLine(source.file, None, "not JSON")])
    reading = read_transcript(lines, source=source, final=True, limits=limits)
    quarantined = [QuarantinedLine(source.file, line.line, line.reason) for line in reading.unread]
    return TurnsRead(len(document), [reading.turns], quarantined, reading.consumed_lines, is_transcript=True)
