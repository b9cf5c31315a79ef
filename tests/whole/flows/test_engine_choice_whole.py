"""Prefect where a server of it answers, plain elsewhere; where Prefect fails, the stages run without it."""

import pytest

from cortex.flows.engines import runs
from cortex.flows.engines.runs import PLAIN
from tests.bench import contents, difference
from tests.store.flows.test_engine_choice import (
    NOWHERE,
    _no_prefect,  # noqa: F401
)
from tests.transcripts import decisions


@pytest.mark.parametrize("wanted", ["auto", "prefect"])
def test_a_server_that_does_not_answer_is_named_and_the_run_goes_on(home, monkeypatch, bench, wanted):
    monkeypatch.setenv("PREFECT_API_URL", NOWHERE)
    decisions().write(bench.projects)
    bench.stage()
    report = bench.run(engine=wanted)
    assert report.engine == PLAIN and report.rows["memories"] > 0
    assert any(NOWHERE in note and "without it" in note for note in report.notes)


def test_a_prefect_that_starts_late_is_done_without(bench, other, monkeypatch):
    decisions().write(bench.projects)

    def late(stages, run):
        stages[0][1](run)  # something was done before it failed: stages are safe to repeat
        raise RuntimeError(
            "Timed out while attempting to connect to ephemeral Prefect API server.\n stdout: …"
        )

    monkeypatch.setattr(runs, "_run_flow", late)
    monkeypatch.setattr(runs, "configure_prefect", lambda home: None)
    monkeypatch.setattr(runs.atexit, "register", lambda function: None)
    bench.stage()
    report = bench.run(engine="prefect")
    assert report.engine == PLAIN
    assert [note for note in report.notes if "Timed out" in note and "stdout" not in note]
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
