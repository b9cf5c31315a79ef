"""What a language model wrote of real sessions, recorded: believed or refused, and what is worth keeping."""

from pathlib import Path

import pytest

from benchmarks.writer_quality import PlayedStore, scored
from benchmarks.writer_requests import played, read_in
from cortex.scores.extraction_scores import DenseEvaluation
from cortex.storage.store import Store

pytestmark = pytest.mark.real

REPLIES = Path(__file__).parents[3] / "fixtures" / "recorded-replies"


# One session each: a store of many takes a minute, and the figures of all are in docs/quality.md.
PROJECTS = (
    "transcripts/p04-sound-recorder",
    "transcripts/p07-worktrees",
    "transcripts/p11-ideas",
    "transcripts-2/q07-random-draw",
    "transcripts-2/q13-rwa-research",
    "transcripts-2/q14-trading-tui",
)


@pytest.fixture(scope="module")
def results(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DenseEvaluation]:
    """Return the scores of rules and writer on sessions with a recorded answer, a project a store."""
    stores = []
    for name in PROJECTS:
        home = tmp_path_factory.mktemp(Path(name).name) / "home"
        read_in(home, real_data / name)
        played(home, REPLIES, is_lenient=True)
        stores.append(PlayedStore(Store(home)))
    dense = real_data / "labels-dense"
    return scored(stores, [dense / "dev.jsonl", dense / "second.jsonl"])


def test_what_is_shown_of_them_is_worth_keeping(results):
    figures = results["writer"].as_dict()
    assert figures["worth"] >= 0.88 and figures["noise"] <= 0.06
    assert figures["recall"] >= 0.8 and figures["recall_grade_3"] >= 0.9
    assert figures["facts_per_session"] <= 12


def test_they_say_more_of_it_than_the_rules(results):
    rules, writer = results["rules"].as_dict(), results["writer"].as_dict()
    assert all(writer[name] > rules[name] for name in ("worth", "recall", "recall_grade_3"))
