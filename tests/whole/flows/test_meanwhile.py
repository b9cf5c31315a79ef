"""What is written while a run goes on: it is of the next run, as a whole, and shown after that."""

import pytest

from cortex.flows import runs
from cortex.flows.run import Run
from cortex.flows.stages.order import INGEST
from cortex.flows.stages.stage import stage
from cortex.flows.stages.team import team
from cortex.transforms.memory.fold import memory_id
from tests.bench import NOW, Bench
from tests.rows import entry
from tests.transcripts import decisions

FACT = "The lamp oil is ordered in spring"


BEHIND = [
    pytest.param(position, id=f"{position}-{s.name}")
    for position, s in enumerate(INGEST, start=1)
    if position > INGEST.index(team)  # the last that takes in what was written
]


@pytest.mark.parametrize("position", BEHIND)
def test_what_is_remembered_between_two_stages_is_in_the_brief_after_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, position: int
):
    decisions().write(bench.projects)
    bench.begin()
    scope = bench.store.projects.all()[0].project_id

    @stage()
    def interrupted(run: Run) -> None:
        payload = {"text": FACT, "memory_type": "pattern", "category": "project"}
        name = memory_id(scope, "pattern", FACT)
        bench.store.journal.write(entry("remember", scope, payload, recorded_at=NOW, memory_id=name))

    with monkeypatch.context() as patched:
        patched.setitem(runs.FLOWS, "ingest", (*INGEST[:position], interrupted, *INGEST[position:]))
        bench.run()
    assert FACT not in bench.store.published.brief(scope)
    bench.run()
    assert FACT in bench.texts()
    assert FACT in bench.store.published.brief(scope)
