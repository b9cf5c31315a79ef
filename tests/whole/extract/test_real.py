"""The specification's figures for extraction without a model, on the labelled real transcripts (spec 14)."""

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from cortex.transforms.extract.evaluate import Evaluation, evaluate
from cortex.transforms.extract.events import extract_events
from cortex.transforms.policy import Policy
from cortex.transforms.transcripts.transcript import Source, read_transcript

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def scores(real_data: Path, policy: Policy) -> Evaluation:
    """Return the scores of the labelled development sessions."""
    lines = (real_data / "labels" / "dev.jsonl").read_bytes().splitlines()
    labels = [orjson.loads(line) for line in lines]
    tables = []
    for session in sorted({label["session"] for label in labels}):
        data = (real_data / "transcripts" / session).read_bytes()
        source = Source(session, session.split("/")[0], session, None)
        tables.append(read_transcript(data, source=source, final=True).turns)
    least_shown = policy.threshold("shown_min_confidence")
    return evaluate(extract_events(pa.concat_tables(tables), policy), labels, least_shown)


def test_two_of_five_labels_have_all_their_terms_in_one_of_ten_facts(scores: Evaluation) -> None:
    # Single sentences with all key terms; what is worth keeping is counted by the dense labels.
    assert scores.recall >= 0.40
    assert scores.recall_importance_3 >= 0.45


def test_at_most_one_trap_in_twenty_is_hit(scores: Evaluation) -> None:
    assert scores.traps_hit <= 0.05


def test_nothing_superseded_is_shown_and_hardly_anything_twice(scores: Evaluation) -> None:
    assert scores.superseded_shown == 0
    assert scores.duplicates <= 2
