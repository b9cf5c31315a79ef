"""The Python API: values for every operation, and nothing printed."""

import doctest

import pytest

from cortex import Memory
from cortex.flows.operations.edit import forget, projects, remember
from cortex.transforms.errors import UsageError
from tests.bench import NOW, SAMPLES, words_for_a_model
from tests.process.flows.operations.test_memory import (
    FACTS,
    PAGE,
    memory,  # noqa: F401
)


def test_the_example_of_the_page_runs_as_it_says(home, tmp_path):
    results = doctest.testfile(
        str(PAGE), module_relative=False, globs={"store": home, "project": tmp_path / "kelp"}
    )
    assert results.attempted > 5 and results.failed == 0


def test_operations_give_values_and_print_nothing(memory, capsys):
    levels, stations = (memory.remember(fact, memory_type="decision") for fact in FACTS)
    assert isinstance(levels, remember.Remembered)
    assert (levels.project, levels.outcome, levels.applied.warning) == ("kelp", "remembered", "")
    assert memory.remember(FACTS[0]).outcome == "reinforced"
    assert [match.text for match in memory.recall("levels millimetres").matches][:1] == [FACTS[0]]
    assert memory.pin(levels.memory_id).text == FACTS[0]
    replacement = memory.supersede(levels.memory_id[:8], stations.memory_id[:8])
    assert (replacement.old_text, replacement.new_text) == FACTS
    assert memory.undo_supersede(levels.memory_id).text == FACTS[0]
    assert memory.checkpoint("here").at > NOW
    assert memory.rename_project("kelp", "forest").name == "forest"
    assert isinstance(memory.list_projects(), projects.Projects)
    assert memory.export(form="markdown").memories == 2
    assert [review.items for review in memory.review()] == [[]]
    plan = memory.plan_reset("forest")
    assert (plan.memories, plan.turns) == (2, 0)
    reset = memory.reset(plan)
    assert (reset.plan, reset.applied, reset.copies.left) == (plan, levels.applied, [])
    assert isinstance(reset, forget.Reset)
    assert capsys.readouterr().out == ""


def texts_about(memory, question):
    """Return the texts of all that answers: of one subject one result, the others stand nearby."""
    matches = memory.recall(question).matches
    return {row.text for match in matches for row in (match, *match.nearby)}


def test_a_plan_says_what_would_go_and_erases_nothing(memory):
    fact = memory.remember(FACTS[0])
    both = memory.remember(f"{FACTS[0]} {FACTS[1]}")
    plan = memory.plan_forget(fact.memory_id)
    assert [row["memory_id"] for row in plan.others] == [both.memory_id]
    assert plan.needs_consent
    assert memory.plan_forget(fact.memory_id).others == plan.others
    assert len(texts_about(memory, "millimetres")) == 1  # the words of one stand in the other
    assert memory.forget(plan).text == FACTS[0]
    assert [match.text for match in memory.recall("stations").matches] == [f"[forgotten] {FACTS[1]}"]


def test_words_that_stand_in_two_memories_forget_nothing(memory):
    for fact in ("Barges are loaded before the tide turns.", "Ropes are changed before the tide turns."):
        memory.remember(fact)
    with pytest.raises(UsageError, match="could mean more than one"):
        memory.forget("before the tide turns")
    assert len(texts_about(memory, "tide")) == 2


def test_a_program_goes_the_whole_way_without_a_command(home, tmp_path):
    memory = Memory(home, embedder_of=words_for_a_model, folder=tmp_path)
    plan = memory.plan_backfill([SAMPLES])
    result = memory.backfill([SAMPLES])
    assert result.problem is None
    assert result.report.transcripts == len(plan.backfill.transcripts) > 0
    project = memory.list_projects().projects[0].project_id
    [brief] = memory.read_briefs(project)
    shown = [choice for each in memory.explain_briefs(project) for choice in each.choices if choice.is_shown]
    assert shown and brief.project_id == project
    assert memory.query_tables("select count(*) from memories").rows != [(0,)]
    assert memory.compare_tables().differences == []
    assert memory.run_flow("ingest").transcripts == 0
    assert memory.read_stats(project) and memory.read_status()
