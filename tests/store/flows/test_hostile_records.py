"""Claims about hostile input: no record stops another, no transcript another, and nothing goes silently."""

from itertools import islice
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cortex.flows import extract as extracting
from cortex.flows import extraction
from cortex.storage.reference import read_policy
from cortex.transforms.audit import events_violations, turns_violations
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.quotes import with_quotes_lowered
from cortex.transforms.masking import masked
from cortex.transforms.schemas import EVENTS, TURNS, values
from cortex.transforms.transcripts.assistants import Head, lines_of_document
from cortex.transforms.transcripts.transcript import Source, read_transcript
from tests.bench import leftovers
from tests.hostile import HOSTILE, LINES, every_kind, hostile_sessions, line_of, mutated, nested
from tests.other_assistants import gemini_decisions
from tests.transcripts import Talk, decisions, lines

POLICY = read_policy(None)
SOURCE = Source("/t/s1.jsonl", "kelp-1", "s1")
SEEDS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.slow) for seed in range(40)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hostile_record_costs_no_other_record_and_no_audit(seed):
    records = every_kind()
    for at, hostile in islice(mutated(records, seed), 25):
        around = [
            lines([records[at - 1]]),
            line_of(hostile) + b"\n",
            lines([records[(at + 1) % len(records)]]),
        ]
        reading = read_transcript(b"".join(around), source=SOURCE)
        alone = [read_transcript(around[number], source=SOURCE, first_line=number + 1) for number in (0, 2)]
        wanted = {name for each in alone for name in values(each.turns, "turn_id")}
        assert wanted <= set(values(reading.turns, "turn_id")), hostile
        assert reading.consumed_lines == 3
        events = extract_events(reading.turns, POLICY)
        events = masked(with_quotes_lowered(events, reading.turns), EVENTS)
        assert events_violations(events, reading.turns) == []
        found = {violation.reason for violation in turns_violations(reading.turns)}
        assert found <= {
            "its key is there twice"
        }  # the same words twice in one message; folded by the commit


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_hostile_line_is_set_aside_or_read_and_the_next_line_too(line):
    good = lines(decisions().records)
    reading = read_transcript(line + b"\n" + good, source=SOURCE)
    before = read_transcript(good, source=SOURCE)
    assert set(values(before.turns, "text")) <= set(values(reading.turns, "text"))
    assert [a.line for a in reading.unread] in ([1], []) and reading.consumed_bytes == len(line + good) + 1


@pytest.mark.parametrize("depth", [1, 64, 254, 255, 300, 480])
def test_a_deeply_nested_tool_input_is_kept_down_to_a_bounded_depth(depth):
    talk = Talk().call("Bash", "ok", command="pytest", options=nested(depth, "list"))
    reading = read_transcript(lines(talk.records), source=SOURCE)
    assert reading.unread == []
    call = reading.turns.filter(pc.equal(reading.turns["kind"], "tool_call")).to_pylist()[0]
    assert call["text"] == "pytest"
    assert call["tool_input"].count("[") == min(depth, 64)


def test_a_chat_with_a_message_nested_too_deep_loses_that_message_alone():
    document = gemini_decisions().document()
    deep = b'{"type":"user","content":' + b"[" * 1_000 + b"]" * 1_000 + b"},"
    at = document.index(b'"messages": [') + len(b'"messages": [')
    content = lines_of_document(document[:at] + deep + document[at:])
    head = Head("gemini", "g1", "/home/dev/kelp", is_document=True)
    reading = read_transcript(content, source=Source("/t/g1.json", "kelp-1", "g1", None, head), final=True)
    assert [(a.line, a.reason) for a in reading.unread] == [(1, "not an object")]
    assert any("SQLite" in text for text in values(reading.turns, "text"))


def test_a_message_of_more_blocks_than_can_be_counted_keeps_the_first_and_says_so():
    talk = decisions()
    blocks = [{"type": "text", "text": f"Line {number} of the log."} for number in range(33_000)]
    talk.records[1]["message"]["content"] = blocks
    reading = read_transcript(lines(talk.records), source=SOURCE)
    assert [(a.line, a.reason) for a in reading.unread] == [(2, "too many blocks")]
    assert pc.max(reading.turns["block"]).as_py() == 32_766


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "step"),  # each of many sessions is a project: the quick suite takes every sixth
    [(1, 6), *(pytest.param(seed, 1, marks=pytest.mark.slow) for seed in (1, 2))],
)
def test_hostile_transcripts_leave_the_good_one_beside_them_as_it_is(bench, other, seed, step):
    good = decisions("good", cwd="/home/dev/reef")
    good.write(other.projects)
    other.begin()
    folder = bench.projects / "hostile"
    folder.mkdir(parents=True)
    names = []
    for name, content in islice(hostile_sessions(decisions("bad"), seed, count=len(LINES)), 0, None, step):
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
    owner = extracting if hasattr(extracting, name) else extraction
    real = getattr(owner, name)

    def fails(*arguments, **options):
        tables = [a for a in arguments if getattr(a, "schema", None) == TURNS.arrow]
        if any(word in text for table in tables for text in values(table, "text")):
            raise KeyError(word)
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, fails)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.usefixtures("contained_faults")
def test_a_mistake_of_our_own_is_not_contained(bench, monkeypatch):
    def fails(*arguments):
        raise NameError("misspelt")

    monkeypatch.setattr(extraction, "extract_events", fails)
    decisions().write(bench.projects)
    with pytest.raises(NameError):
        bench.backfill()


def test_the_hostile_values_are_of_every_kind():
    assert {type(value) for value in HOSTILE} == {type(None), bool, int, float, list, dict, str}
