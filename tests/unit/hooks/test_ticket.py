"""The ticket format, read back as staging reads it."""

import re
from pathlib import Path

import pytest

from cortex.hooks import ticket
from tests.examples import cases


def test_the_hash_of_a_path_is_fnv_1a():
    assert ticket.path_hash("") == 0xCBF29CE484222325
    assert ticket.path_hash("foobar") == 0x85944171F73967E8  # from the authors' test vectors


def test_a_key_stays_while_a_file_grows_and_changes_when_it_is_replaced():
    assert ticket.key_for("/p/s.jsonl", 7) == ticket.key_for("/p/s.jsonl", 7)
    assert (
        len(
            {
                ticket.key_for("/p/s.jsonl", 7),
                ticket.key_for("/p/s.jsonl", 8),
                ticket.key_for("/q/s.jsonl", 7),
            }
        )
        == 3
    )


def test_a_file_name_carries_time_and_key(tmp_path):
    transcript = tmp_path / "0b6f-4a52.jsonl"
    transcript.write_text("{}\n")
    name = Path(ticket.drop(str(tmp_path / "staging"), "subagent-stop", str(transcript))).name
    key = ticket.key_for(str(transcript), transcript.stat().st_ino)
    assert ticket.key_in_name(name) == key
    assert re.fullmatch(rf"\d{{8}}T\d{{12}}Z-subagent-stop-0b6f_4a52-{key}\.json", name)


def test_times_in_names_sort_as_text():
    assert ticket.stamp(1_790_000_000_123_456_789) == "20260921T141320123456Z"
    assert ticket.stamp(999_999_999_999_999_999) < ticket.stamp(1_000_000_000_000_000_000)


@cases(
    ("path", "owner"),
    [
        ("/p/4f0c.jsonl", ("4f0c", None)),
        ("/p/4f0c/subagents/agent-a1.jsonl", ("4f0c", "a1")),
        ("/p/4f0c/subagents/workflows/w/agent-a1.jsonl", ("4f0c", "a1")),
        ("/p/agent-a1.jsonl", ("", "a1")),
    ],
)
def test_the_owner_is_told_by_the_path(path, owner):
    assert ticket.owner_in_path(path) == owner


@pytest.mark.parametrize("session_id", ["../../etc/passwd", "a/b", "", "x" * 500, "é\0\n"])
def test_a_strange_session_id_makes_a_plain_file_name(tmp_path, session_id):
    transcript = tmp_path / "s.jsonl"
    transcript.write_text("{}\n")
    path = ticket.drop(str(tmp_path / "staging"), "stop", str(transcript), session_id=session_id)
    assert Path(path).parent == tmp_path / "staging" / "new"


@cases(
    "raw",
    [
        b"",
        b"\x00\xff",
        b"[]",
        b'{"version": 2, "transcript_path": "/s.jsonl"}',
        b'{"version": 1}',
        b'{"version": 1, "transcript_path": "relative.jsonl"}',
        b'{"version": 1, "transcript_path": "/s\\u0000.jsonl"}',
        b'{"version": 1, "transcript_path": "/s.jsonl", "cwd": 7}',
        b'{"version": 1, "transcript_path": "/s.jsonl"' + b" " * 70_000 + b"}",
    ],
)
def test_what_is_no_ticket_is_refused(raw):
    with pytest.raises(ValueError):
        ticket.parse(raw)


def test_unknown_fields_are_let_through():
    assert ticket.parse(b'{"version": 1, "transcript_path": "/s.jsonl", "later": 1}')["later"] == 1
