"""The reader on real transcripts: nothing stops it, nothing is lost, and skipping by bytes is right."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cortex.transforms.extract.events import deduplicated, mark_rewound
from cortex.transforms.transcripts.speakers import utterances_in
from cortex.transforms.transcripts.transcript import (
    REASONS,
    Reading,
    Source,
    line_may_speak,
    objects_in,
    read_transcript,
)

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the real transcripts (../shared/data) are not here"),
]


def files() -> list[Path]:
    return sorted([*SHARED.glob("transcripts/**/*.jsonl"), *SHARED.glob("client-transcripts/*.jsonl")])


def source_of(path: Path) -> Source:
    is_agent = path.stem.startswith("agent-") or path.stem == "subagent"
    return Source(
        file=str(path.relative_to(SHARED)), project_id="p1", agent_id=path.stem if is_agent else None
    )


@pytest.fixture(scope="module")
def readings() -> dict[str, Reading]:
    return {
        source_of(path).file: read_transcript(path.read_bytes(), source=source_of(path), final=True)
        for path in files()
    }


@pytest.fixture(scope="module")
def turns(readings: dict[str, Reading]) -> pa.Table:
    return pa.concat_tables([reading.turns for reading in readings.values()])


def skipped_lines() -> Iterator[bytes]:
    for path in files():
        yield from (
            line for line in path.read_bytes().split(b"\n") if line.strip() and not line_may_speak(line)
        )


def test_every_file_is_read_to_its_end(readings: dict[str, Reading]):
    assert len(readings) == 60
    assert [reading.consumed_bytes for reading in readings.values()] == [
        path.stat().st_size for path in files()
    ]
    assert {problem.reason for reading in readings.values() for problem in reading.unread} <= set(REASONS)
    assert sum(len(reading.unread) for reading in readings.values()) == 0


def test_lines_skipped_by_their_bytes_hold_no_turn():
    skipped = list(skipped_lines())
    assert len(skipped) > 1_000
    for line in skipped:
        records, reason = objects_in(line)
        assert reason is None
        assert all(utterances_in(record, in_agent_file=False) == [] for record in records)


def test_the_glued_line_gives_both_records(readings: dict[str, Reading]):
    (path,) = SHARED.glob("transcripts/p08-*/s05.jsonl")
    line = path.read_bytes().split(b"\n")[127]
    records, reason = objects_in(line)
    assert (len(records), reason) == (2, None)
    assert 128 in readings[source_of(path).file].turns["line"].to_pylist()


def test_each_kind_is_found_about_as_often_as_by_hand(turns: pa.Table):
    found = Counter(turns["kind"].to_pylist())
    assert 150 <= found["prompt"] <= 250
    assert found["rejection"] >= 8
    assert found["choice"] >= 7
    assert found["plan"] >= 10
    assert found["shell"] == 13
    assert found["recap"] == 35
    assert found["tool_call"] > 2_000
    assert abs(found["tool_call"] - found["tool_result"]) < 10


def test_every_id_is_of_one_turn_but_for_copies(turns: pa.Table):
    assert turns.num_rows - deduplicated(turns).num_rows < 10


def test_few_prompts_are_rewound(turns: pa.Table):
    assert 0 < len(mark_rewound(turns)) < 100


def test_a_file_read_in_pieces_gives_the_same_turns(readings: dict[str, Reading]):
    (path,) = SHARED.glob("transcripts/p09-*/s05.jsonl")
    data, source = path.read_bytes(), source_of(path)
    pieces, start, line = [], 0, 1
    for cut in [*range(0, len(data), 97_531), len(data)]:
        reading = read_transcript(data[start:cut], source=source, first_line=line)
        pieces.append(reading.turns)
        start, line = start + reading.consumed_bytes, line + reading.consumed_lines
    assert pa.concat_tables(pieces).equals(readings[source.file].turns)
