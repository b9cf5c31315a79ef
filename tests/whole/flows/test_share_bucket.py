"""Three developers share by a bucket (of moto's): in conflict, offline for days, removing, killed between."""

import pytest

from benchmarks.two_writers import URI, served_bucket
from cortex.flows.operations.ask import brief as brief_operation
from cortex.flows.operations.ask import reasoning
from cortex.flows.operations.ask.reasoning import CONTRADICTORY
from cortex.flows.operations.edit import forget as forget_operation
from cortex.flows.operations.edit import remember as remember_operation
from cortex.flows.operations.maintain import intake, rebuild
from cortex.flows.operations.share import share
from cortex.flows.operations.share import team as team_operation
from cortex.storage.lake.journal import Journal
from cortex.storage.remote import bucket as remote_bucket
from cortex.transforms.errors import StoreUnreachable
from tests.whole.flows.test_share_whole import Laptop
from tests.whole.flows.test_team import PNPM, UTC_RULE, git

NPM = "Use npm, not pnpm, in the web folder."
KILN = "Fire the third kiln overnight, because the second one cracks its glaze."


@pytest.fixture
def team(tmp_path, monkeypatch):
    with served_bucket() as surroundings:
        for name, value in surroundings.items():
            monkeypatch.setenv(name, value)
        yield tuple(laptop(tmp_path, name) for name in ("ana", "bo", "cy"))


def laptop(folder, name: str) -> Laptop:
    clone = folder / name / "kelp"
    git(folder, "init", "-q", "-b", "main", str(clone))
    git(clone, "remote", "add", "origin", "https://example.org/team/kelp.git")
    git(clone, "config", "user.name", name.title())
    git(clone, "config", "user.email", f"{name}@example.org")
    return Laptop(clone, folder / name / "home", f"{URI}/place")


def remember(person: Laptop, *texts: str) -> None:
    for text in texts:
        remember_operation.remember(person.context(), text, memory_type="decision")


def forget(person: Laptop, text: str) -> None:
    planned = forget_operation.plan_forget(person.context(), person.rows()[text]["memory_id"])
    forget_operation.forget(person.context(), planned)


def push(person: Laptop) -> tuple[int, int, int]:
    planned = share.plan_push(person.chosen())
    share.push(person.chosen(), planned)
    return planned[0].shared, planned[0].fresh, planned[0].withdrawn


def pull(person: Laptop) -> tuple[int, int, int]:
    [pulled], applied = share.pull(person.chosen())
    assert applied.is_in_effect and not pulled.refusals
    return pulled.shared, pulled.fresh, pulled.withdrawn


def active(person: Laptop) -> dict[str, str]:
    return {text: row["trust"] for text, row in person.rows().items() if row["status"] == "active"}


def test_who_was_offline_for_days_is_in_step_after_one_push_and_one_pull(team, monkeypatch):
    ana, bo, cy = team
    remember(ana, PNPM, KILN)
    remember(bo, NPM)
    remember(cy, UTC_RULE)
    assert (push(ana), pull(cy)) == ((2, 2, 0), (2, 2, 0))
    with monkeypatch.context() as offline:
        offline.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        offline.setattr(remote_bucket, "RETRY_SECONDS", 1)
        for _ in range(3):  # days
            for deed in (push, pull):
                with pytest.raises(StoreUnreachable):
                    deed(cy)
        cy.hours += 72
        forget(cy, KILN)
        assert active(cy) == {PNPM: "colleague", UTC_RULE: "user"}
    forget(ana, PNPM)
    assert (push(bo), pull(bo)) == ((1, 1, 0), (2, 2, 0))
    assert (push(ana), pull(ana)) == ((1, 0, 1), (1, 1, 0))
    assert (push(cy), pull(cy)) == ((1, 1, 0), (1, 1, 1)), "what she forgot does not come back"
    assert (pull(ana), pull(bo)) == ((2, 1, 0), (2, 1, 1))
    assert active(ana) == {KILN: "user", NPM: "colleague", UTC_RULE: "colleague"}
    assert active(bo) == {NPM: "user", KILN: "colleague", UTC_RULE: "colleague"}
    assert active(cy) == {UTC_RULE: "user", NPM: "colleague"}
    for person in team:
        assert pull(person)[1:] == (0, 0) and push(person)[1:] == (0, 0), "again changes nothing"
        assert rebuild.compare_tables(person.chosen()).differences == []


def test_what_contradicts_ones_own_is_pulled_beside_it_and_shown(team):
    ana, bo, _ = team
    remember(ana, PNPM)
    remember(bo, NPM)
    push(ana)
    [pulled], _ = share.pull(bo.chosen())
    assert (pulled.fresh, pulled.conflicts) == (1, 1)
    assert active(bo) == {NPM: "user", PNPM: "colleague"}
    [conflict] = team_operation.team_status(bo.chosen()).conflicts
    assert (conflict.own_text, conflict.team_text) == (NPM, PNPM)
    assert conflict.speaker == "colleague Ana (shared)"
    [brief] = brief_operation.read_briefs(bo.chosen())
    lines = brief.text.splitlines()
    assert [line for line in lines if NPM in line and f'[contradicted by "{PNPM[:-1]}' in line]
    [point] = reasoning.reflect(bo.chosen()).of_kind(CONTRADICTORY)
    assert set(point.texts) == {NPM, PNPM}
    forget(ana, PNPM)
    push(ana)
    pull(bo)
    assert team_operation.team_status(bo.chosen()).conflicts == []
    [brief] = brief_operation.read_briefs(bo.chosen())
    assert NPM in brief.text and "[contradicted by" not in brief.text


@pytest.mark.spread(2)
@pytest.mark.parametrize("written", range(3))
def test_a_pull_that_is_killed_is_done_again(team, monkeypatch, written):
    ana, bo, _ = team
    remember(ana, PNPM, KILN)
    remember(bo, UTC_RULE)
    push(ana)
    real, count = Journal.write, []

    def dies(journal, row):
        if len(count) == written:
            raise KeyboardInterrupt
        count.append(row)
        real(journal, row)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Journal, "write", dies)
        patch.setattr(share, "apply_now", lambda *_: dies(None, None))
        pull(bo)
    assert pull(bo)[0] == 2
    intake.run_flow(bo.chosen(), "ingest")
    assert active(bo) == {UTC_RULE: "user", PNPM: "colleague", KILN: "colleague"}
    assert rebuild.compare_tables(bo.chosen()).differences == []
