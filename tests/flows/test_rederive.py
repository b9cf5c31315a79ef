"""Re-derivation: a new extractor changes nothing by itself; it is shown, then promoted or dropped."""

import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.flows import extract as extracting
from cortex.flows import rederive as rederiving
from cortex.flows import runs
from cortex.flows.comparison import compare
from cortex.flows.rederive import decline, promote, propose_rederivation
from cortex.transforms.extract import extract_events, extractor
from tests.flows.conftest import NOW, SAMPLES, contents, difference
from tests.present import present
from tests.transcripts import decisions

# Whole runs, two seconds each: together too long for the quick suite.
pytestmark = pytest.mark.slow


@pytest.fixture
def newer(monkeypatch):
    """Return a function that puts a newer extractor in place: it makes patterns of gotchas."""

    def begin():
        real = extract_events

        def read(given, policy, *more):
            rows = real(given, policy, *more).to_pylist()
            for row in rows:
                if row["memory_type"] == "gotcha":
                    row.update(memory_type="pattern", text=f"Mind: {row['text']}")
            return real(given, policy, *more).from_pylist(rows, schema=real(given, policy, *more).schema)

        monkeypatch.setattr(extracting, "extract_events", read)
        monkeypatch.setattr(extractor, "EXTRACTOR_VERSION", 99)

    return begin


def asked(bench, then=None, projects=None):
    with runs.opened("rederive", bench.context) as run:
        found = propose_rederivation(run, projects)
        if then:
            then(run, found)
    return {proposal.scope.split("-")[0]: proposal for proposal in found.proposals}


def test_the_same_extractor_and_policy_propose_nothing(bench):
    bench.backfill(SAMPLES)
    for proposal in asked(bench).values():
        assert (proposal.appears, proposal.vanishes, proposal.changes, proposal.texts_to_embed) == (
            [],
            [],
            [],
            0,
        )


def test_a_newer_extractor_changes_no_old_session_by_itself_and_the_run_says_so(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    newer()
    report = bench.run()
    assert difference(contents(bench.home), before) == {}
    assert "cortex rederive" in report.stages[[s.stage for s in report.stages].index("extract")].note


def test_what_appears_vanishes_and_changes_is_told_and_nothing_is_written(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    newer()
    kelp = asked(bench)["kelp"]
    assert [row["memory_type"] for row in kelp.appears] == ["pattern"]
    assert [row["memory_type"] for row in kelp.vanishes] == ["gotcha"]
    assert kelp.texts_to_embed == 1 and kelp.unchanged == len(bench.texts()) - 1
    assert difference(contents(bench.home), before) == {}


def test_promoted_the_store_is_what_the_newer_extractor_makes_from_scratch(bench, other, newer):
    decisions().write(bench.projects)
    bench.begin()
    newer()
    asked(bench, promote)
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert asked(bench)["kelp"].appears == []
    with runs.opened("rebuild", bench.context) as run:
        assert compare(run).differences == []
        assert extracting.outdated(run.store.lake.manifest, run.policy) == []


def test_killed_after_its_commit_the_next_run_finishes_a_promotion(bench, other, newer, monkeypatch):
    decisions().write(bench.projects)
    bench.begin()
    newer()

    class Killed(BaseException):
        """Stands for the end of the process."""

    def dies(run):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(rederiving, "PROJECTION", (dies,))
        with pytest.raises(Killed):
            asked(bench, promote)
    bench.run()
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_dropped_it_is_not_mentioned_again_and_a_session_that_grows_is_read_anew(bench, newer):
    talk = decisions()
    talk.write(bench.projects)
    bench.begin()
    newer()
    asked(bench, lambda run, found: decline(run))
    assert "rederive" not in str(bench.run().as_dict())
    talk.assistant("[MEMORY: gotcha] The buoy sends its serial number in place of a level.").write(
        bench.projects
    )
    bench.backfill()
    assert any(text.startswith("Mind: The buoy") for text in bench.texts())


def test_journal_entries_about_a_memory_that_would_vanish_are_counted(bench, newer):
    from tests.rows import entry

    decisions().write(bench.projects)
    bench.begin()
    [gotcha] = [row for row in bench.memories() if row["memory_type"] == "gotcha"]
    pin = entry("pin", gotcha["project_id"], {}, recorded_at=NOW, memory_id=gotcha["memory_id"])
    bench.store.journal.write(pin)
    bench.run("ingest", NOW + timedelta(minutes=1))
    newer()
    assert asked(bench)["kelp"].orphaned_entries == 1


def test_what_a_person_forgot_stays_forgotten_whatever_a_newer_extractor_calls_it(bench, newer):
    from tests.flows.test_loss import here

    decisions().write(bench.projects)
    bench.begin()
    [gotcha] = [row for row in bench.memories() if row["memory_type"] == "gotcha"]
    here().forget(gotcha["memory_id"])
    newer()
    asked(bench, promote)
    assert not [row for row in bench.memories() if gotcha["text"] in row["text"]]


def test_the_command_proposes_promotes_and_refuses_both_at_once(bench, newer):
    decisions().write(bench.projects)
    bench.begin()
    newer()
    shown = json.loads(CliRunner().invoke(main, ["rederive", "--json"], obj=present).stdout)
    assert (shown["outcome"], shown["cost"]["texts_to_embed"]) == ("proposed", 1)
    assert CliRunner().invoke(main, ["rederive", "--promote", "--drop"], obj=present).exit_code == 2
    assert "1 appear, 1 vanish" in CliRunner().invoke(main, ["rederive", "--promote"], obj=present).stdout
    assert json.loads(CliRunner().invoke(main, ["status", "--json"], obj=present).stdout)["outdated"] == []
