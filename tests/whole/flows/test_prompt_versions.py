"""A changed instruction reads what is new; reading the old again has a price, a diff and a way back."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.flows.operations.maintain.rebuild import rederive
from cortex.flows.run import model_replies
from cortex.storage.model_calls import Spending
from cortex.storage.settings import reference
from cortex.storage.settings.settings import ModelBudget, ModelSettings, Settings
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import REPLIES
from tests.bench import NOW, Bench, words_for_a_model
from tests.model_server import Answer, ModelServer
from tests.transcripts import Talk
from tests.whole.flows.test_writing import FACT, STATEMENT, answers, shown, talk

BETTER = "SQLite at storage/tides.db keeps the tide tables, one file a year."
MARK = "Write as the second wording asks."


@dataclass(frozen=True)
class PromptBench(Bench):
    """A bench whose store asks the model at `url`."""

    url: str = ""
    budget: ModelBudget = field(default_factory=ModelBudget)

    @property
    def settings(self) -> Settings:
        models = ModelSettings("api" if self.url else "none", api_key="sk-none", base_url=self.url or None)
        return Settings(self.home, models=models, budget=self.budget)


@pytest.fixture
def bench(home: Path, projects: Path) -> PromptBench:
    return PromptBench(home, projects, words_for_a_model)


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what puts a second version of the instruction beside the first, as a release would."""

    def released() -> None:
        folder = tmp_path / "prompts"
        shutil.copytree(str(reference.prompt_folder()), folder)
        text = (folder / "session-2.md").read_text(encoding="utf-8")
        (folder / "session-3.md").write_text(f"{text}\n{MARK}\n", encoding="utf-8")
        shutil.copy2(folder / "session-2.schema.json", folder / "session-3.schema.json")
        monkeypatch.setattr(reference, "prompt_folder", lambda: folder)
        monkeypatch.setattr(model_replies, "SESSION_PROMPT", "session@3")

    return released


def by_version(body: dict[str, Any], number: int) -> Answer:
    return answers(FACT | {"statement": BETTER} if MARK in body["system"] else FACT)


def versions(server: ModelServer) -> list[int]:
    """Return by which version each request was made, in the order of arrival."""
    return [2 if MARK in body["system"] else 1 for body in server.asked]


def whales(name: str, hours_ago: int) -> Talk:
    session = Talk(name, cwd=f"/home/dev/{name}", start=NOW - timedelta(hours=hours_ago))
    return session.user("Where are the tide tables?").assistant("In storage/tides.db, one file a year.")


def test_a_new_version_reads_what_is_new_or_has_grown_and_nothing_else(bench, release):
    first = talk(start=NOW - timedelta(hours=9))
    first.write(bench.projects)
    whales("reef", 7).write(bench.projects)
    with ModelServer(by_version) as server:
        bench = replace(bench, url=server.url)
        bench.backfill()
        release()
        bench.run()
        assert versions(server) == [1, 1]
        whales("kelp-2", 5).write(bench.projects)
        first.user("From now on always write the logs in UTC.").assistant("Will do.").write(bench.projects)
        bench.backfill()
        assert versions(server) == [1, 1, 2, 2]
        assert BETTER in shown(bench)  # what has grown is told as its last reading has it
        bench.run()
        assert len(server.asked) == 4


def test_reading_again_has_a_price_a_diff_and_a_way_back(bench, release):
    talk(start=NOW - timedelta(hours=9)).write(bench.projects)
    whales("reef", 7).write(bench.projects)
    with ModelServer(by_version) as server:
        bench = replace(bench, url=server.url)
        bench.backfill()
        before = shown(bench)
        assert rederive(bench.context).again is None
        release()
        price = rederive(bench.context).again
        assert price is not None and (price.sessions, price.requests) == (2, 2) and price.usd > 0
        assert len(server.asked) == 2  # to look costs nothing

        asked = rederive(bench.context, asks=True)
        assert versions(server) == [1, 1, 2, 2]
        spent = [each for each in Spending(bench.home).attempts()][2:]
        assert sum(each.input_tokens for each in spent) <= price.input_tokens
        assert asked.again is None and shown(bench) == before
        appears = {row["text"] for proposal in asked.rederivation.proposals for row in proposal.appears}
        vanishes = {row["text"] for proposal in asked.rederivation.proposals for row in proposal.vanishes}
        assert BETTER in appears and STATEMENT in vanishes
        bench.run()
        assert shown(bench) == before  # an answer is a proposal until it is promoted

        assert rederive(bench.context, promote=True, accepts_loss=True).outcome == "promoted"
        better = shown(bench)
        assert BETTER in better and STATEMENT not in better
        bench.run()
        assert shown(bench) == better

        back = rederive(bench.context, prompt="session@2", promote=True, accepts_loss=True)
        assert back.again is None and shown(bench) == before
        bench.run()
        assert rederive(bench.context, promote=True).outcome == "promoted"  # keeps what was taken back
        assert shown(bench) == before
        assert len(server.asked) == 4
        whales("kelp-2", 5).write(bench.projects)
        bench.backfill()
        assert versions(server)[4:] == [1]
        rederive(bench.context, prompt="session@3", promote=True, accepts_loss=True)
        assert BETTER in shown(bench) and len(server.asked) == 5


def test_one_project_may_have_another_version_than_the_rest(bench, release):
    talk(start=NOW - timedelta(hours=9)).write(bench.projects)
    talk("s2", cwd="/home/dev/reef", start=NOW - timedelta(hours=7)).write(bench.projects)
    with ModelServer(by_version) as server:
        bench = replace(bench, url=server.url)
        bench.backfill()
        release()
        rederive(bench.context, asks=True)
        rederive(bench.context, "reef", promote=True, accepts_loss=True)
        assert STATEMENT in shown(bench) and BETTER not in shown(bench)
        assert BETTER in bench.texts("reef") and STATEMENT not in bench.texts("reef")


def test_the_budget_holds_and_what_is_left_is_said(bench, release):
    talk(start=NOW - timedelta(hours=9)).write(bench.projects)
    whales("reef", 7).write(bench.projects)
    with ModelServer(by_version) as server:
        bench = replace(bench, url=server.url)
        bench.backfill()
        release()
        limited = replace(bench, budget=ModelBudget(run_requests=1))
        asked = rederive(limited.context, asks=True)
        assert versions(server) == [1, 1, 2]
        assert asked.again is not None and asked.again.requests == 1
        assert any("1 session wait" in note for note in asked.notes)
        rederive(limited.context, asks=True)
        assert versions(server) == [1, 1, 2, 2]
        rederive(limited.context, asks=True)
        assert len(server.asked) == 4
        assert len({row["request_id"] for row in bench.store.lake.read(REPLIES).to_pylist()}) == 4


def test_what_cannot_be_asked_for_is_refused(bench, release):
    release()
    with pytest.raises(UsageError, match="No language model"):
        rederive(bench.context, asks=True)
    with ModelServer(by_version) as server:
        bench = replace(bench, url=server.url)
        with pytest.raises(UsageError, match="session@4"):
            rederive(bench.context, prompt="session@4")
        with pytest.raises(UsageError, match="cannot be combined"):
            rederive(bench.context, asks=True, promote=True)
        assert server.asked == []
