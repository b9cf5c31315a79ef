"""
`cortex eval benefit` from end to end with a scripted agent, which does what the words it was given allow.

This tests the harness: that conditions order as they must, through the real hooks. It says nothing of how
good a memory is for an assistant.
"""

import json
import shlex
import sys
from pathlib import Path

import pytest

from cortex.scores.benefit_agents import graded_by_tests
from cortex.scores.benefit_runs import STAGES
from cortex.scores.benefit_tasks import load_tasks
from tests.examples import HAS_EVERY_CASE
from tests.scripted_agent import DATA, solutions, written

AGENT = f"{shlex.quote(sys.executable)} {Path(__file__).parents[2] / 'scripted_agent.py'}"
SETS = load_tasks([])


@pytest.mark.parametrize("tasks", SETS, ids=lambda tasks: tasks.name)
def test_the_reference_passes_and_what_one_writes_who_knows_nothing_does_not(tasks):
    rows = {row["id"]: row["solutions"] for row in solutions()}
    for task in tasks.tasks:
        grades = {name: graded_by_tests(tasks, task, written(each)) for name, each in rows[task.id].items()}
        assert grades["reference"].right == 1 and grades["reference"].misled == 0, (task.id, grades)
        assert grades["naive"].right == (task.kind == "control"), (task.id, grades)
        assert grades["naive"].misled == 0, (task.id, grades)
        assert ("misled" in grades) == (task.kind == "trap"), task.id
        if task.kind == "trap":
            assert (grades["misled"].right, grades["misled"].misled) == (0, 1), (task.id, grades)


def test_knowing_the_facts_solves_all_thirty_and_knowing_nothing_none(cortex):
    answer = cortex(
        "eval", "benefit", "--agent", AGENT, "--conditions", "none,client,by_hand,oracle", "--json"
    )
    figures = answer.json["conditions"]
    right = {name: round(row["right"]["value"] * row["graded"]) for name, row in figures.items()}
    assert right["none"] == 0 and right["oracle"] == 30
    assert 0 < right["client"] < right["by_hand"] == 30
    assert all(row["controls_right"]["value"] == 1 for row in figures.values())


def test_through_the_real_hooks_the_conditions_order_as_they_must(cortex, tmp_path):
    words = ["eval", "benefit", "--agent", AGENT, "--allow-commands", "--json"]
    for name in ("choirdesk", "tideboard"):
        document = json.loads((DATA / f"{name}.json").read_text())
        if not HAS_EVERY_CASE:  # memories, traps and the control
            document["tasks"] = document["tasks"][1::3]
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
        words += ["--tasks", tmp_path / f"{name}.json"]
    names = ("none", "hook", "cortex", "cortex+recall", "transcripts", "oracle", "stale", "poisoned", "other")
    data = cortex(*words, "--conditions", ",".join(names)).json
    figures = data["conditions"]
    assert tuple(figures) and set(figures) == set(names), data["left_out"]
    right = {name: row["right"]["value"] for name, row in figures.items()}
    assert right["none"] == right["other"] == 0 and right["oracle"] == 1
    assert 0 < right["cortex"] <= right["cortex+recall"] <= right["transcripts"] == 1
    assert right["stale"] < right["cortex"] and figures["stale"]["misled"]["value"] > 0
    assert figures["other"]["tokens_given"] == 0
    for session in data["sessions"]:
        is_missed = session["kind"] != "control" and session["grade"]["right"] < 1
        assert (session["lost"] in (*STAGES, "not given")) == is_missed, session
    assert set(figures["cortex"]["lost"]) <= set(STAGES)
    assert not data["worse_than_none"]["other"]
