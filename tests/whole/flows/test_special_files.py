"""A ticket that names something else than a transcript: a run goes past it, and says so."""

import json
from pathlib import Path

import pytest

from cortex.hooks import ticket
from tests.process.hooks.test_special_files import SPECIAL, Laying
from tests.transcripts import decisions


@pytest.mark.spread(3)
@pytest.mark.parametrize("lay", SPECIAL, ids=lambda lay: lay.__name__)
def test_a_run_sets_it_aside_with_its_reason(bench, tmp_path: Path, lay: Laying):
    special = tmp_path / "elsewhere" / "0aa9b9a8.jsonl"
    special.parent.mkdir()
    lay(special)
    honest = decisions().write(bench.projects)
    write_ticket(bench.home, special)
    bench.stage(honest)
    report = bench.run()
    assert report.transcripts == 1
    [reason] = [line.reason for line in report.quarantined]
    assert any(word in reason for word in ("regular", "another user", "holes", "gone"))


def write_ticket(home: Path, transcript: Path) -> None:
    """Write the ticket of a transcript that something else took the place of."""
    fields = {"session_id": "s", "agent_id": None, "cwd": "/home/dev/kelp", "size": 9, "event": "stop"}
    fields |= {
        "version": ticket.TICKET_VERSION,
        "transcript_path": str(transcript),
        "at": "20260901T000000000000Z",
    }
    path = home / "staging" / "new" / "20260901T000000000000Z-stop-s-0000000000000000_1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(fields))
