"""What a language model wrote of real sessions, recorded: believed or refused, and what is worth keeping."""

from pathlib import Path

import pytest

from benchmarks.writer_quality import PlayedStore, scored
from benchmarks.writer_requests import played, read_in
from cortex.scores.extraction_scores import DenseEvaluation
from cortex.storage.store import Store
from cortex.transforms.writer.request import SESSION_PROMPT

pytestmark = pytest.mark.real

REPLIES = Path(__file__).parents[3] / "fixtures" / "recorded-replies"


@pytest.fixture(scope="module")
def results(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DenseEvaluation]:
    """Return the scores of rules and writer on the sessions with a recorded answer, a project a store."""
    dense = real_data / "labels-dense"
    stores = []
    for folder in sorted([*real_data.glob("transcripts/*/"), *real_data.glob("transcripts-2/*/")]):
        home = tmp_path_factory.mktemp(folder.name) / "home"
        read_in(home, folder)
        played(home, REPLIES)
        stores.append(PlayedStore(Store(home)))
    scores = scored(stores, [dense / "dev.jsonl", dense / "second.jsonl"])
    if not scores["writer"].labels:
        pytest.skip(f"no answer to a request of {SESSION_PROMPT} is recorded yet")
    return scores


def test_what_is_shown_of_them_is_worth_keeping(results):
    figures = results["writer"].as_dict()
    assert figures["worth"] >= 0.88 and figures["noise"] <= 0.06
    assert figures["recall"] >= 0.85 and figures["recall_grade_3"] >= 0.95
    assert figures["facts_per_session"] <= 12


def test_they_say_more_of_it_than_the_rules(results):
    rules, writer = results["rules"].as_dict(), results["writer"].as_dict()
    assert all(writer[name] > rules[name] for name in ("worth", "recall", "recall_grade_3"))
