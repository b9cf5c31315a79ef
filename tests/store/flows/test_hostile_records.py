"""Claims about hostile input: no record stops another, no transcript another, and nothing goes silently."""

from itertools import islice

import pyarrow.compute as pc
import pytest

from cortex.flows.reading import shards
from cortex.storage.settings.reference import read_policy
from cortex.transforms.audit import events_violations, turns_violations
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.quotes import with_quotes_lowered
from cortex.transforms.masking import masked
from cortex.transforms.schemas import EVENTS, values
from cortex.transforms.transcripts.assistants import Head, lines_of_document
from cortex.transforms.transcripts.transcript import Source, read_transcript
from tests.examples import cases
from tests.hostile import HOSTILE, LINES, every_kind, line_of, mutated, nested
from tests.other_assistants import gemini_decisions
from tests.transcripts import Talk, decisions, lines

POLICY = read_policy(None)
SOURCE = Source("/t/s1.jsonl", "kelp-1", "s1")


def read_hostile_records(seed):
    """Put hostile records between sound ones; none may cost a sound one or break a promise of the audit."""
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


@cases("seed", range(4))
def test_a_hostile_record_costs_no_other_record_and_no_audit(seed):
    read_hostile_records(seed)


@cases("line", LINES)
def test_a_hostile_line_is_set_aside_or_read_and_the_next_line_too(line):
    good = lines(decisions().records)
    reading = read_transcript(line + b"\n" + good, source=SOURCE)
    before = read_transcript(good, source=SOURCE)
    assert set(values(before.turns, "text")) <= set(values(reading.turns, "text"))
    assert [a.line for a in reading.unread] in ([1], []) and reading.consumed_bytes == len(line + good) + 1


@cases("depth", [1, 64, 254, 255, 300, 480])
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
    content = lines_of_document(document[:at] + deep + document[at:], Head("gemini"))
    head = Head("gemini", "g1", "/home/dev/kelp", is_document=True)
    reading = read_transcript(content, source=Source("/t/g1.json", "kelp-1", "g1", None, head), final=True)
    assert [(a.line, a.reason) for a in reading.unread] == [(1, "not an object")]
    assert any("SQLite" in text for text in values(reading.turns, "text"))


@pytest.mark.usefixtures("contained_faults")
def test_a_mistake_of_our_own_is_not_contained(bench, monkeypatch):
    def fails(*arguments):
        raise NameError("misspelt")

    monkeypatch.setattr(shards, "extract_events", fails)
    decisions().write(bench.projects)
    with pytest.raises(NameError):
        bench.backfill()


def test_the_hostile_values_are_of_every_kind():
    assert {type(value) for value in HOSTILE} == {type(None), bool, int, float, list, dict, str}
