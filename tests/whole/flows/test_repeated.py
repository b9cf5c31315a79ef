"""Commands that were killed and are given again finish what was begun, and journal nothing twice."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from cortex.flows.operations.edit import apply
from cortex.flows.operations.share import exchange
from cortex.flows.stages import order
from cortex.storage.remote.store_lease import lease
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from tests.bench import NOW, Bench, here
from tests.present import clock_at
from tests.traces import traces
from tests.transcripts import Talk, decisions

# Whole runs, two seconds each: together too long for the quick suite.

CANARY = "quagsireplum"


class Killed(BaseException):
    """Stands for the end of the process."""


pytestmark = pytest.mark.usefixtures("at_noon")


@pytest.fixture
def talk(bench: Bench) -> Talk:
    """Two projects, one with a session that holds the canary."""
    talk = (
        decisions("s1").user("And?").assistant(f"[MEMORY: decision] The {CANARY} reef has gauges of its own.")
    )
    talk.write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.begin()
    return talk


def rows(bench: Bench, kind: str) -> list[dict[str, object]]:
    journal = Store(bench.home).journal.read().to_pylist()
    return [row for row in journal if row["kind"] == kind and row["actor"] == "user"]


def killed(monkeypatch: pytest.MonkeyPatch, stage: str, command: Callable[[], None]) -> None:
    """Give a command and end the process before one of its stages; "journal": before all of them."""

    def dies(*arguments: object) -> None:
        raise Killed

    def run(stages_given: tuple[Callable[..., None], ...], run: object) -> None:
        for given in stages_given:
            if stage in ("journal", given.name):
                dies()
            given(run)

    with monkeypatch.context() as patch:
        patch.setattr(apply, "run_plain", run)
        with pytest.raises(Killed):
            command()


@pytest.mark.spread(3)
@pytest.mark.parametrize("stage", ["journal", *(stage.name for stage in order.FORGET[1:])])
def test_a_killed_forgetting_of_a_session_is_finished_when_it_is_given_again(bench, monkeypatch, talk, stage):
    def forget() -> None:
        here().forget_session(talk.session_id[:8])

    killed(monkeypatch, stage, forget)
    with clock_at(NOW + timedelta(seconds=1)):  # at the same instant a second entry would be the same one
        forget()
    assert traces(bench.home, CANARY) == []
    assert len(rows(bench, "forget")) == 1


def test_a_session_that_never_was_is_still_not_found(bench, talk):
    with pytest.raises(NotFound):
        here().forget_session("0123456789")


@pytest.mark.spread(2)
@pytest.mark.parametrize("stage", ["journal", "embed", "decay", "render"])
def test_a_killed_merge_and_a_killed_split_are_finished_when_given_again(bench, monkeypatch, talk, stage):
    def merge() -> None:
        here().merge_projects("reef", "kelp")

    def split() -> None:
        here().split_project("reef")

    before = bench.texts("reef")
    for minute, (command, holder) in enumerate(((merge, "kelp"), (split, "reef"))):
        with clock_at(NOW + timedelta(minutes=minute)):
            killed(monkeypatch, stage, command)
            count = len(rows(bench, "project"))
        with clock_at(NOW + timedelta(minutes=minute, seconds=1)):
            command()
        assert set(before) <= set(bench.texts(holder))
        assert len(rows(bench, "project")) == count
    assert bench.texts("reef") == before


def test_projects_that_always_were_one_are_still_refused(bench, talk):
    with pytest.raises(UsageError, match="the same project"):
        here().merge_projects("kelp", "kelp")


def test_while_another_run_writes_a_session_is_wanted_gone_once(bench, talk):
    with lease(bench.home):
        here().forget_session(talk.session_id)
        with clock_at(NOW + timedelta(seconds=1)):
            here().forget_session(talk.session_id)
    assert len(rows(bench, "forget")) == 1
    bench.run()
    assert traces(bench.home, CANARY) == []


def test_a_killed_import_is_finished_when_it_is_given_again(bench, monkeypatch, talk, tmp_path):
    notes = tmp_path / "notes.md"
    notes.write_text("- The slipway is greased on Mondays.\n")

    def dies(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "run_plain", dies)
        with pytest.raises(Killed):
            here().import_memories(notes, project="kelp")
    with clock_at(NOW + timedelta(seconds=1)):
        here().import_memories(notes, project="kelp")
    assert any("slipway" in text for text in bench.texts())
    journal = Store(bench.home).journal.read().to_pylist()
    assert [row["kind"] for row in journal].count("import") == 1
