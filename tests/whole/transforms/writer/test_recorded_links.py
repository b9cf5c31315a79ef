"""What a language model said of pairs of real facts, recorded: few pairs are more than neighbours."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.links_requests import links_requests
from cortex.transforms.writer.pairs import (
    BOTH,
    NEWER,
    SAME,
    UNANSWERED,
    PairsRequest,
    believed_verdicts,
)
from cortex.transforms.writer.request import SESSION_PROMPT

pytestmark = pytest.mark.real

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture(scope="module")
def requests(real_data: Path) -> list[PairsRequest]:
    """Return the requests about pairs of the recorded answers' facts, as they are made today."""
    dense = real_data / "labels-dense"
    folders = [
        (real_data / "transcripts", dense / "dev.jsonl"),
        (real_data / "transcripts-2", dense / "second.jsonl"),
    ]
    found = links_requests(folders, FIXTURES / "recorded-replies")
    if not found:
        pytest.skip(f"no answer to a request of {SESSION_PROMPT} is recorded yet")
    return found


def answer_to(request: PairsRequest) -> str:
    path = FIXTURES / "recorded-links" / f"{request.request.request_id}.json"
    return json.dumps(json.loads(path.read_text())["text"])


def test_every_request_has_an_answer_and_every_answer_a_request(requests):
    answered = {path.stem for path in (FIXTURES / "recorded-links").glob("*.json")}
    assert {asked.request.request_id for asked in requests} == answered


def test_each_pair_has_a_verdict_and_few_pairs_are_more_than_neighbours(requests):
    verdicts = [believed_verdicts(answer_to(asked), asked.pairs) for asked in requests]
    counted = Counter(word for each in verdicts for word in each.values())
    assert counted[UNANSWERED] == 0
    assert counted[NEWER] == 3 and counted[SAME] == 1 and counted[BOTH] == sum(counted.values()) - 4


def test_a_tool_given_up_and_a_version_released_since_are_proposed_as_no_longer_true(requests):
    newer = [
        pair.older.text
        for asked in requests
        for pair in asked.pairs
        if believed_verdicts(answer_to(asked), asked.pairs)[pair.name] == NEWER
    ]
    assert any("Graphite" in text for text in newer)
    assert any("v0.11.6" in text for text in newer)
