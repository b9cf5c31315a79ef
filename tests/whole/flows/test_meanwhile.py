"""What is written while a run goes on: it is of the next run, as a whole, and shown after that."""

import pytest

from cortex.flows.engines import runs
from cortex.flows.run.run import Run, Stage, stage
from cortex.flows.stages.order import INGEST
from cortex.flows.stages.team_facts import team
from cortex.transforms.memory.fold import memory_id
from tests.bench import NOW, Bench
from tests.rows import entry
from tests.transcripts import decisions

# The stages from the last that takes in what was written, and a fact for each: a brief shows like ones once.
BEHIND = INGEST[INGEST.index(team) :]
FACTS = (
    "The lamp oil is ordered in spring",
    "Oars are numbered on the blade",
    "Winches get grease after each regatta",
    "Nobody paints a hull below ten degrees",
    "Charts hang beside the north window",
    "Spare anchors lie under the blue tarpaulin",
    "Radio checks happen at seven sharp",
    "Compass deviation belongs into the logbook",
    "Sails dry flat, never folded wet",
    "Diesel comes from Brandt alone",
    "Guests sign before boarding",
    "Keys return to the harbourmaster tonight",
    "Fenders need thirty centimetres of rope",
    "Two people lift every outboard motor",
    "Varnish takes five thin coats",
    "Bilge pumps run on their own battery",
    "Life jackets are weighed in January",
    "Buoys carry yellow numbers",
)


def test_what_is_remembered_between_two_stages_is_in_the_brief_after_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    decisions().write(bench.projects)
    bench.begin()
    scope = bench.store.projects.all()[0].project_id

    def remembering(fact: str) -> Stage:
        @stage()
        def interrupted(run: Run) -> None:
            payload = {"text": fact, "memory_type": "pattern", "category": "project"}
            name = memory_id(scope, "pattern", fact)
            bench.store.journal.write(entry("remember", scope, payload, recorded_at=NOW, memory_id=name))

        return interrupted

    written = [step for each, fact in zip(BEHIND, FACTS, strict=True) for step in (each, remembering(fact))]
    with monkeypatch.context() as patched:
        patched.setitem(runs.FLOWS, "ingest", (*INGEST[: -len(BEHIND)], *written))
        bench.run()
    early = bench.store.published.brief(scope)
    assert [fact for fact in FACTS if fact in early] == []
    bench.run()
    texts, brief = bench.texts(), bench.store.published.brief(scope)
    assert [fact for fact in FACTS if fact not in texts or fact not in brief] == []
