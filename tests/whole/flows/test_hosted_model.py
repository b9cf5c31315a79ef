"""A hosted model that fails: words alone answer, it is said, and recovery fills in."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.flows import embedders
from cortex.flows.embedders import embedder_in_force, local
from cortex.flows.embedders import voyage as provider
from cortex.flows.operations.ask.recall import search_only
from cortex.flows.recalling.recall_search import RecallResult
from cortex.storage.model_failure import hosted_failure, note_failure, read_failure
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.schemas import VECTORS
from tests.bench import NOW, Bench, WordEmbedder, contents
from tests.present import embedding_with, present
from tests.transcripts import decisions

WIDTH = provider.DIMENSIONS
QUESTION = "whole millimetres because floats drift"


class Service:
    """A stand-in for Voyage AI's client: answers, or fails in the way that `fault` says."""

    def __init__(self) -> None:
        self.fault = ""
        self.fails_from = 0
        self.asked = 0

    def embed(self, texts: list[str], **chosen: Any) -> SimpleNamespace:
        self.asked += 1
        if self.fault and self.asked > self.fails_from:
            return self._fail(texts)
        return SimpleNamespace(embeddings=[_vector(text) for text in texts])

    def _fail(self, texts: list[str]) -> SimpleNamespace:
        answers: dict[str, list[list[float]]] = {
            "wrong dimensions": [[1.0] * 8 for _ in texts],
            "partial answer": [_vector(text) for text in texts[1:]],
            "empty vectors": [[0.0] * WIDTH for _ in texts],
            "not numbers": [[float("nan")] * WIDTH for _ in texts],
        }
        if self.fault in answers:
            return SimpleNamespace(embeddings=answers[self.fault])
        raise type(self.fault, (Exception,), {})("the key pa-secret was refused")


def _vector(text: str) -> list[float]:
    row = np.full(WIDTH, 0.01)
    for word in text.lower().split():
        row[hashlib.sha256(word.encode()).digest()[0]] += 1
    return [float(cell) for cell in row]


class Local(WordEmbedder):
    """Stands for the local model under its own name, in 16 dimensions."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    made = Service()
    monkeypatch.setattr(provider, "connect", lambda key: provider.VoyageEmbedder(made.embed))
    monkeypatch.setattr(local, "load", Local)
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-secret")
    with embedding_with(embedder_in_force):
        yield made


@pytest.fixture
def bench(home, tmp_path) -> Bench:
    class Keyed(Bench):
        @property
        def settings(self):
            return Settings(home=self.home, voyage_api_key="pa-secret")

    decisions().write(tmp_path / "projects")
    return Keyed(home, tmp_path / "projects", embedder_in_force)  # the real choice between the two


@pytest.fixture
def retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a service that failed again at once."""
    monkeypatch.setattr(embedders, "RETRIED_AFTER", timedelta())


def never_failed(bench: Bench, tmp_path: Path) -> Bench:
    other = replace(bench, home=tmp_path / "never_failed")
    other.backfill()
    return other


def found(bench: Bench, question: str) -> list[RecallResult]:
    return search_only(bench.context, question, all_projects=True)


def vectors_of(bench: Bench) -> dict[str, int]:
    lake = bench.store.lake
    return {model: lake.read(VECTORS, model).num_rows for model in lake.manifest.partitions("vectors")}


FAULTS = [
    "AuthenticationError", "RateLimitError", "Timeout", "APIConnectionError", "ServiceUnavailableError",
    "wrong dimensions", "partial answer", "empty vectors", "not numbers",
]  # fmt: skip


@pytest.mark.spread(2)
@pytest.mark.parametrize("fault", FAULTS[:1] + FAULTS[5:7])
def test_while_it_fails_words_alone_answer_and_once_it_answers_all_is_as_if_it_always_had(
    bench, service, tmp_path, fault, retried
):
    service.fault = fault
    report = bench.backfill()
    [row] = [row for row in report.stages if row.stage == "embed"]
    assert row.note == f"{provider.MODEL} gave no answer; the next run asks again"
    assert vectors_of(bench) == {}
    assert any("millimetres" in text for result in found(bench, QUESTION) for text in result.texts)
    service.fault = ""
    bench.run(now=NOW)
    assert contents(bench.home) == contents(never_failed(bench, tmp_path).home)


@pytest.mark.spread(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_way_to_fail_is_no_answer(service, fault):
    service.fault = fault
    with pytest.raises(ModelUnavailable) as raised:
        provider.connect("key").embed(["one", "two"])
    assert "pa-secret" not in str(raised.value)


def test_a_service_that_fails_midway_leaves_what_it_gave_and_the_rest_follows(
    bench, service, tmp_path, monkeypatch, retried
):
    monkeypatch.setattr(provider, "BATCH_TEXTS", 2)
    service.fault, service.fails_from = "RateLimitError", 1
    bench.backfill()
    service.fault = ""
    bench.run(now=NOW)
    assert contents(bench.home) == contents(never_failed(bench, tmp_path).home)


def test_a_run_without_news_makes_nothing_again_while_it_fails(bench, service):
    service.fault = "Timeout"
    bench.backfill()
    asked, notes = service.asked, bench.store.lake.notes
    report = bench.run(now=NOW)
    assert service.asked == asked, "it failed a moment ago"
    rows = {row.stage: row.rows_out for row in report.stages}
    assert [rows[stage] for stage in ("embed", "link", "decay", "render")] == [0, 0, 0, 0]
    assert bench.store.lake.notes == notes


def test_of_many_scopes_only_those_that_lack_vectors_are_made_again(bench, service, retried):
    bench.backfill()
    service.fault = "Timeout"
    decisions("s2", cwd="/home/dev/atoll").write(bench.projects)
    report = bench.backfill()
    linked = {row.stage: row.rows_in for row in report.stages}["link"]
    service.fault = ""
    report = bench.run(now=NOW)
    assert {row.stage: row.rows_in for row in report.stages}["link"] == linked > 0


def test_a_question_it_does_not_answer_is_answered_by_words_and_nobody_waits_a_second_time(bench, service):
    bench.backfill()
    with_vectors = found(bench, QUESTION)
    service.fault = "Timeout"
    asked = service.asked
    by_words = found(bench, QUESTION)
    assert by_words[0].id == with_vectors[0].id and by_words[0].score != with_vectors[0].score
    assert read_failure(bench.home).model == provider.MODEL and service.asked == asked + 1
    assert [result.score for result in found(bench, QUESTION)] == [result.score for result in by_words]
    assert service.asked == asked + 1, "noted: it is left alone for ten minutes"
    service.fault = ""
    failure = read_failure(bench.home)
    note_failure(bench.home, replace(failure, failed_at=failure.failed_at - embedders.RETRIED_AFTER))
    assert found(bench, QUESTION)[0].score == with_vectors[0].score
    assert read_failure(bench.home) is None


def test_between_a_new_key_and_the_first_run_words_answer(bench, service, monkeypatch):
    monkeypatch.delenv("VOYAGE_API_KEY")
    Bench(bench.home, bench.projects, embedder_in_force).backfill()
    assert vectors_of(bench).keys() == {Local.model}
    assert found(bench, QUESTION)


def cortex(*words: str) -> Any:
    return CliRunner().invoke(main, list(words), obj=present)


def test_status_and_doctor_say_so(bench, service):
    service.fault = "AuthenticationError"
    bench.backfill()
    assert json.loads(cortex("status", "--json").stdout)["embedding"]["model"] == provider.MODEL
    assert "has not answered since" in cortex("status").stdout
    answer = cortex("doctor", "--json").stdout
    checks = {check["check"]: check for check in json.loads(answer)["checks"]}
    assert not checks["embedding model"]["ok"] and "pa-secret" not in answer
    assert "AuthenticationError" in checks["embedding model"]["finding"]


def test_without_a_key_no_note_counts(bench, service, tmp_path):
    service.fault = "Timeout"
    bench.backfill()
    plain = Bench(bench.home, bench.projects, embedder_in_force)
    report = plain.run(now=NOW + timedelta(minutes=1))
    assert [row.note for row in report.stages if row.stage == "embed"] == [Local.model]
    assert hosted_failure(plain.settings) is None


def test_a_key_without_its_library_leaves_the_local_model_in_force(bench, monkeypatch):
    def missing(key: str) -> Any:
        raise ModelUnavailable("a Voyage key is set, but the library 'voyageai' is not installed.", "")

    monkeypatch.setattr(provider, "connect", missing)
    monkeypatch.setattr(local, "load", Local)
    assert isinstance(embedder_in_force(bench.settings), Local)
