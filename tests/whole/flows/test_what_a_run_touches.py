"""A run costs what is new: projects that nothing was said in are neither drafted nor counted again."""

from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.memory import Memory
from cortex.flows.past.rebuilding import compare
from cortex.flows.publishing import database
from cortex.flows.publishing.database import last_snapshots
from cortex.flows.run import run as lake_views
from cortex.flows.stages import embed, publish
from cortex.storage.lake.lake import Lake
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, METRICS
from tests.bench import NOW, Bench
from tests.transcripts import decisions

REEF = "/home/dev/reef"


@pytest.fixture
def two(bench) -> Bench:
    """Return a store of the projects kelp and reef."""
    decisions("s1").write(bench.projects)
    decisions("s2", cwd=REEF).write(bench.projects)
    bench.begin()
    return bench


@pytest.fixture
def drafted(monkeypatch) -> list[str]:
    """Return the projects whose briefs are made, in order."""
    projects: list[str] = []
    real = publish.draft_of

    def noting(run, project_id):
        projects.append(project_id)
        return real(run, project_id)

    monkeypatch.setattr(publish, "draft_of", noting)
    return projects


def say_more(bench: Bench, name: str = "s3", **chosen: object) -> None:
    path = decisions(name, start=NOW + timedelta(hours=1), **chosen).write(bench.projects)
    bench.stage(path)
    bench.run(now=NOW + timedelta(hours=2))


def test_only_the_project_of_a_new_session_gets_another_brief(two, drafted):
    say_more(two, cwd=REEF)
    assert [name.partition("-")[0] for name in drafted] == ["reef"]


def test_what_holds_everywhere_is_in_every_brief_at_once(two, drafted):
    Memory.of(two.context).remember("Answer in metric units.", is_global=True)
    two.run(now=NOW + timedelta(hours=2))
    assert {name.partition("-")[0] for name in drafted} == {"kelp", "reef"}


def test_snapshots_of_untouched_projects_are_reused_and_are_what_would_be_made(two):
    say_more(two, cwd=REEF)
    run = runs.read_only_run(two.context)
    known = last_snapshots(run)
    projects = [scope for scope in run.readings.scopes() if scope != "global"]
    assert all(known.rows_of(table, scope) is not None for table in (MEMORIES, METRICS) for scope in projects)
    again = database.derived_tables(run)
    assert database.derived_tables(run, known) == again


def test_a_snapshot_of_other_inputs_is_not_reused(two):
    known = last_snapshots(runs.read_only_run(two.context))
    [reef] = [scope for scope in known.fingerprints["memories"] if scope.startswith("reef")]
    say_more(two, cwd=REEF)
    now = last_snapshots(runs.read_only_run(two.context))
    assert known.fingerprints["memories"][reef] != now.fingerprints["memories"][reef]
    assert known.fingerprints["metrics"][reef] != now.fingerprints["metrics"][reef]


def test_the_next_day_folds_no_memory_again_and_rebuilt_equals_live(two, monkeypatch):
    done: list[object] = []
    real = lake_views.fold_joined

    def folding(events, journal, policy, scope):
        done.append(scope)
        return real(events, journal, policy, scope)

    with monkeypatch.context() as patch:
        patch.setattr(lake_views, "fold_joined", folding)
        patch.setattr(embed, "index_text", done.append)
        two.run("nightly", NOW + timedelta(days=1))
    assert set(done) <= {GLOBAL_SCOPE}  # without a memory it has no table to be read
    with runs.opened("rebuild", two.at(NOW + timedelta(days=1))) as run:
        assert compare(run).differences == []


def test_what_came_in_is_folded_again_the_next_day(two):
    before = len(two.memories())
    decisions("s4", start=NOW + timedelta(hours=1)).write(two.projects)
    two.stage()
    two.run("nightly", NOW + timedelta(days=1))
    assert len(two.memories()) > before
    with runs.opened("rebuild", two.at(NOW + timedelta(days=1))) as run:
        assert compare(run).differences == []


def test_a_stage_notes_its_projects_in_one_commit(two):
    before = Lake(two.home).manifest.generation
    two.run("nightly", NOW + timedelta(days=1))
    stages = ("decay", "consolidate", "render", "publish")
    assert Lake(two.home).manifest.generation - before <= len(stages)
