"""Remember, forget and recall through whole runs: at once, under another run's lease, over weeks."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from cortex.flows.operations.edit.remember import Remembered
from cortex.flows.recalling.recall_search import RecallResult
from cortex.storage.remote.store_lease import lease
from cortex.transforms.errors import ModelUnavailable, NotFound, StoreBusy
from cortex.transforms.schemas import VECTORS
from tests.bench import NOW, WordEmbedder, contents, here
from tests.rows import entry
from tests.transcripts import START, Talk, decisions

pytestmark = pytest.mark.usefixtures("in_kelp")


def remembered(text: str, **chosen: object) -> Remembered:
    return here().remember(text, memory_type="decision", **chosen)


def found(question: str, *, all_projects: bool = True) -> Sequence[RecallResult]:
    return here().recall(question, all_projects=all_projects).matches


def test_what_is_remembered_is_found_at_once(bench):
    remembered("Levels are stored as millimetres.")
    [best] = found("how are levels stored", all_projects=False)
    assert (best.text, best.confidence) == ("Levels are stored as millimetres.", 1.0)
    assert best.project_id == here().list_projects().projects[0].project_id


def test_a_secret_is_not_remembered(bench):
    remembered("The token of the release bot is ghp_" + "a1B2" * 9)
    assert "ghp_" not in json.dumps(contents(bench.home), default=str)


def test_what_is_forgotten_is_found_neither_as_memory_nor_as_turn(bench):
    decisions().write(bench.projects)
    bench.begin()
    assert "millimetres" in str(found("whole millimetres drift"))
    [memory] = [m for m in bench.memories() if "millimetres" in m["text"]]
    here().forget(memory["memory_id"][:12])
    assert "millimetres" not in str(found("whole millimetres drift"))
    assert not any("millimetres" in text for text in bench.texts())
    bench.run("nightly", NOW + timedelta(days=1))
    assert "millimetres" not in str(found("whole millimetres drift"))


def test_forgetting_by_question_reinforces_nothing(bench):
    remembered("Levels are millimetres.")
    remembered("Stations have names in lower case.")
    here().forget("levels are millimetres")
    assert bench.texts() == ["Stations have names in lower case."]
    bench.run("ingest", NOW)
    assert [memory["access_count"] for memory in bench.memories()] == [0]


def test_forgetting_what_is_not_there_says_where_to_look(bench):
    with pytest.raises(NotFound, match="recall"):
        here().forget("0123456789ab")


def test_a_recall_counts_at_the_next_run(bench):
    remembered("Levels are millimetres.")
    found("millimetres")
    found("millimetres")
    bench.run()
    [memory] = bench.memories()
    assert memory["access_count"] == 2 and memory["last_accessed_at"] is not None


def test_an_archived_memory_that_is_recalled_becomes_active_again(bench):
    decisions().write(bench.projects)
    bench.backfill(now=START + timedelta(days=1))
    work = [Talk(f"day{n}", start=START + timedelta(days=n)) for n in range(1, 200)]
    for talk in work[:165]:
        talk.user("Is the build green today?").assistant("Yes, all checks are green.").write(bench.projects)
    bench.backfill(now=START + timedelta(days=165))
    for talk in work[165:]:
        talk.user("Is the build green today?").assistant("Yes, all checks are green.").write(bench.projects)
    bench.backfill(now=START + timedelta(days=200))
    [gotcha] = [m for m in bench.memories() if m["memory_type"] == "gotcha"]
    assert gotcha["status"] == "archived"
    told = {"memory_ids": [gotcha["memory_id"]]}
    at = START + timedelta(days=200)
    bench.store.journal.write(entry("recall", gotcha["project_id"], told, recorded_at=at, actor="recall"))
    bench.run("nightly", at + timedelta(days=1))
    [gotcha] = [m for m in bench.memories() if m["memory_type"] == "gotcha"]
    assert (gotcha["status"], gotcha["access_count"]) == ("active", 1)


def test_a_second_run_is_refused_while_one_writes(bench):
    with lease(bench.home), pytest.raises(StoreBusy):
        bench.run()


def test_remember_recall_and_forget_work_while_a_run_writes(bench):
    remembered("Levels are millimetres.")
    remembered("Stations have names in lower case.")
    [levels] = [m for m in bench.memories() if "Levels" in m["text"]]
    with lease(bench.home):
        assert not remembered("Gauges report every six minutes.").applied.is_in_effect
        here().forget(levels["memory_id"])
        assert found("station names")
    bench.run()
    assert bench.texts() == ["Gauges report every six minutes.", "Stations have names in lower case."]
    assert list((bench.home / "staging" / "journal").iterdir()) == []


def test_a_model_that_gives_no_answer_stops_no_run_and_is_asked_again(bench, other):
    class Away(WordEmbedder):
        def embed(self, texts, *, as_query=False):
            raise ModelUnavailable("the service does not answer.", "Try again.")

    decisions().write(bench.projects)
    report = replace(bench, embedder_of=lambda settings: Away()).backfill()
    assert report.rows["memories"] > 0 and report.rows["vectors"] == 0
    assert any("next run" in stage.note for stage in report.stages)
    bench.run()
    other.begin()
    assert contents(bench.home) == contents(other.home)
    vectors = bench.store.lake.read(VECTORS)
    assert vectors.num_rows == other.store.lake.read(VECTORS).num_rows
    searched = bench.store.tables.open_index(bench.store.tables.scopes()[:1], "memories")
    every = report.rows["memories"]
    assert searched.search_vector(np.array(vectors["vector"][0].as_py()), every).num_rows == every
