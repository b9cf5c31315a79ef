"""Claims about hostile input: no record stops another, no transcript another, and nothing goes silently."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cortex.cli.answer import Listing
from cortex.cli.run_answer import report_answer
from cortex.flows import extract_transcripts as extracting
from cortex.flows.reading import shards
from cortex.storage.staging import transcripts
from cortex.transforms.schemas import TURNS, values
from cortex.transforms.transcripts.transcript import read_transcript
from tests.bench import leftovers
from tests.hostile import LINES, hostile_sessions
from tests.other_assistants import codex_decisions
from tests.store.flows.test_hostile_records import SOURCE, read_hostile_records
from tests.transcripts import decisions, lines


def test_a_message_of_more_blocks_than_can_be_counted_keeps_the_first_and_says_so():
    talk = decisions()
    blocks = [{"type": "text", "text": f"Line {number} of the log."} for number in range(33_000)]
    talk.records[1]["message"]["content"] = blocks
    reading = read_transcript(lines(talk.records), source=SOURCE)
    assert [(a.line, a.reason) for a in reading.unread] == [(2, "too many blocks")]
    assert pc.max(reading.turns["block"]).as_py() == 32_766


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_transcripts_leave_the_good_one_beside_them_as_it_is(bench, other, seed):
    good = decisions("good", cwd="/home/dev/reef")
    good.write(other.projects)
    other.begin()
    folder = bench.projects / "hostile"
    folder.mkdir(parents=True)
    names = []
    for name, content in hostile_sessions(decisions("bad"), seed, count=len(LINES)):
        (folder / f"{name}.jsonl").write_bytes(content)
        names.append(name)
    good.write(bench.projects)
    report = bench.backfill()
    assert bench.texts("reef") == other.texts("reef")
    for fact in ("The tide table of good counts", "good writes levels as whole millimetres"):
        assert any(fact in text for text in bench.texts("reef"))
    taken = {Path(file).stem for file in bench.store.lake.manifest.cursors}
    accounted = taken | {Path(line.file).stem for line in report.quarantined}
    assert set(names) <= accounted
    assert all(line.reason for line in report.quarantined)
    assert [path for path in leftovers(bench.home) if "/transcripts/" not in path] == []
    for flow in ("ingest", "nightly"):
        bench.run(flow)
    assert bench.texts("reef") == other.texts("reef")


def _raises_on(monkeypatch: pytest.MonkeyPatch, name: str, word: str) -> None:
    """Let a function of the extract stage fail wherever a turn of its table holds `word`."""
    owner = extracting if hasattr(extracting, name) else shards
    real = getattr(owner, name)

    def fails(*arguments, **options):
        tables = [a for a in arguments if getattr(a, "schema", None) == TURNS.arrow]
        if any(word in text for table in tables for text in values(table, "text")):
            raise KeyError(word)
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, fails)


@pytest.mark.usefixtures("contained_faults")
def test_a_session_that_extraction_cannot_take_costs_no_other_session(bench, monkeypatch):
    for name in ("anemone", "barnacle"):
        decisions(name).write(bench.projects)
    _raises_on(monkeypatch, "extract_events", "anemone")
    report = bench.backfill()
    assert [text for text in bench.texts() if "anemone" in text] == []
    assert [text for text in bench.texts() if "barnacle" in text]
    assert any("anemone" in text for text in values(bench.store.lake.read(TURNS), "text"))
    [line] = report.quarantined
    assert line.reason.startswith("nothing extracted from session: internal error (KeyError at ")


@pytest.mark.usefixtures("contained_faults")
def test_a_transcript_that_cannot_be_committed_is_set_aside_and_the_others_go_on(bench, monkeypatch):
    for name in ("anemone", "barnacle", "clam"):
        decisions(name).write(bench.projects)
    with monkeypatch.context() as patch:
        _raises_on(patch, "unknown_turns", "anemone")
        report = bench.backfill()
    assert {word for text in bench.texts() for word in ("anemone", "barnacle", "clam") if word in text} == {
        "barnacle",
        "clam",
    }
    assert [line.reason[:24] for line in report.quarantined] == ["internal error (KeyError"]
    assert report.transcripts == 2
    bench.backfill()
    assert any("anemone" in text for text in bench.texts())


def test_of_many_junk_lines_a_thousand_are_named_and_the_rest_are_counted(bench):
    path = decisions().write(bench.projects)
    with path.open("ab") as file:
        file.write(b"x\n" * 3_000 + b"[]\n" * 500)
    report = bench.backfill()
    assert len(report.quarantined) == 1_002 and report.quarantined_count == 3_500
    assert [(a.line, a.reason, a.count) for a in report.quarantined[-2:]] == [
        (None, "not JSON", 2_000),
        (None, "not an object", 500),
    ]
    shown = [line.title if isinstance(line, Listing) else line for line in report_answer(report).lines]
    assert "Quarantined: 3,500" in shown
    assert any("'not JSON': 3000, 'not an object': 500" in line for line in shown)


def test_of_a_compressed_transcript_so_much_is_unpacked_and_the_rest_is_set_aside(bench, monkeypatch):
    monkeypatch.setattr(transcripts, "PIECE_BYTES", 100_000)
    monkeypatch.setattr(transcripts, "UNPACKED_BYTES_MAX", 300_000)
    path = bench.projects / "rollout.jsonl.zst"
    path.parent.mkdir(parents=True)
    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(lines(codex_decisions().records) + b"{}\n" * 1_000_000)
    report = bench.backfill(path)
    assert [line.reason for line in report.quarantined] == ["file too long"]
    assert bench.store.lake.read(TURNS).num_rows > 0


@pytest.mark.usefixtures("contained_faults")
def test_a_record_that_the_reader_cannot_take_is_set_aside_by_its_line(bench, monkeypatch):
    from cortex.transforms.transcripts import transcript

    real = transcript.utterances_in

    def fails(record, **options):
        if "tide" in str(record):
            raise AttributeError("no such thing")
        return real(record, **options)

    monkeypatch.setattr(transcript, "utterances_in", fails)
    decisions().write(bench.projects)
    report = bench.backfill()
    assert [(line.line, line.reason[:30]) for line in report.quarantined] == [
        (5, "internal error (AttributeError")
    ]
    read = values(bench.store.lake.read(TURNS), "text")
    assert [word for word in ("SQLite", "tide", "millimetres") if any(word in text for text in read)] == [
        "SQLite",
        "millimetres",
    ]
    assert any("whole millimetres" in text for text in bench.texts())


@pytest.mark.spread(4)
@pytest.mark.parametrize("seed", range(4, 40))
def test_none_of_many_hostile_records_costs_another_or_breaks_a_promise(seed):
    read_hostile_records(seed)
