"""Members who push and pull in any order, offline for days: in step in the end, nothing lost or doubled."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.context import Context
from cortex.flows.operations.ask import brief as brief_operation
from cortex.flows.operations.edit import forget, remember
from cortex.flows.operations.edit import projects as projects_operation
from cortex.flows.operations.share import share
from cortex.storage.settings.settings import Settings, ShareSettings
from cortex.storage.store import Store
from cortex.transforms.errors import StoreUnreachable
from tests.bench import NOW, words_for_a_model
from tests.whole.flows.test_team import PNPM, UTC_RULE, git


@dataclass
class Laptop:
    """A person's store and clone, and the team's place."""

    clone: Path
    home: Path
    place: str
    hours: int = 0

    def context(self, *projects: str) -> Context:
        self.hours += 1
        at = NOW + timedelta(hours=self.hours)
        settings = Settings(home=self.home, share=ShareSettings(self.place, projects))
        return Context(settings, words_for_a_model, lambda: at, folder=self.clone)

    def chosen(self) -> Context:
        return self.context(str(self.clone))

    def rows(self) -> dict[str, dict]:
        tables = Store(self.home).tables
        rows = (row for scope in tables.scopes() for row in tables.open(scope, "memories").read().to_pylist())
        return {row["text"]: row for row in rows}


@pytest.fixture
def laptops(tmp_path: Path) -> tuple[Laptop, Laptop]:
    made = []
    for name in ("ana", "bo"):
        clone = tmp_path / name / "kelp"
        git(tmp_path, "init", "-q", "-b", "main", str(clone))
        git(clone, "remote", "add", "origin", "https://example.org/team/kelp.git")
        git(clone, "config", "user.name", name.title())
        git(clone, "config", "user.email", f"{name}@example.org")
        made.append(Laptop(clone, tmp_path / name / "home", f"file://{tmp_path}/place"))
    return made[0], made[1]


def test_a_laptop_shares_only_what_was_chosen_and_withdraws_what_was_forgotten(laptops, tmp_path):
    ana, bo = laptops
    for text in (PNPM, UTC_RULE):
        remember.remember(ana.context(), text, memory_type="decision")
    remember.remember(bo.context(), "The gauge of pier two is Bo's.")
    assert share.plan_push(ana.context()) == [], "nothing by default"
    with pytest.raises(StoreUnreachable):
        share.pull(bo.chosen())
    [planned] = share.plan_push(ana.chosen())
    assert (planned.shared, planned.fresh, planned.withdrawn) == (2, 2, 0)
    assert not (tmp_path / "place").exists(), "planning writes nothing"
    share.push(ana.chosen(), [planned])
    [pulled], applied = share.pull(bo.chosen())
    assert (pulled.shared, pulled.fresh, applied.is_in_effect) == (2, 2, True)
    assert bo.rows()[PNPM]["trust"] == "colleague"
    [brief] = brief_operation.read_briefs(bo.chosen())
    assert "(colleague Ana, shared, " in brief.text
    forgotten = forget.plan_forget(ana.context(), ana.rows()[PNPM]["memory_id"])
    forget.forget(ana.context(), forgotten)
    [planned] = share.plan_push(ana.chosen())
    assert (planned.shared, planned.withdrawn) == (1, 1)
    share.push(ana.chosen(), [planned])
    assert not any(PNPM.encode() in file.read_bytes() for file in (tmp_path / "place").rglob("*.json"))
    [pulled], _ = share.pull(bo.chosen())
    assert pulled.withdrawn == 1
    assert (bo.rows()[PNPM]["status"], bo.rows()[UTC_RULE]["status"]) == ("superseded", "active")
    [planned] = share.plan_push(ana.context())
    assert (planned.content, planned.withdrawn) == (None, 1), "a project that is shared no more is withdrawn"


def test_a_project_that_was_merged_is_still_pulled_from_where_colleagues_share_it(laptops, tmp_path):
    ana, bo = laptops
    remember.remember(ana.context(), PNPM, memory_type="decision")
    remember.remember(bo.context(), "The gauge of pier two is Bo's.")
    share.push(ana.chosen(), share.plan_push(ana.chosen()))
    share.pull(bo.chosen())
    harbour = Laptop(tmp_path / "bo" / "harbour", bo.home, bo.place)
    git(tmp_path, "init", "-q", "-b", "main", str(harbour.clone))
    remember.remember(harbour.context(), "The harbour has three piers.")
    projects_operation.merge_projects(bo.context(), "kelp", "harbour")
    remember.remember(ana.context(), UTC_RULE, memory_type="decision")
    share.push(ana.chosen(), share.plan_push(ana.chosen()))
    share.pull(bo.chosen())
    assert {PNPM, UTC_RULE} <= {text for text, row in bo.rows().items() if row["status"] == "active"}
    pulls, _ = share.pull(bo.chosen())
    assert sum(each.fresh + each.withdrawn for each in pulls) == 0
