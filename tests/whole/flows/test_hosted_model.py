"""A hosted model that fails: the local one and its vectors stand in, it is said, and recovery fills in."""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.flows.embedders import local
from cortex.flows.embedders import voyage as provider
from cortex.flows.embedders.embedder_choice import embedder_in_force
from cortex.flows.recalling.fallback_vectors import model_for
from cortex.flows.recalling.recall_search import search_store
from cortex.storage.model_calls.model_failure import hosted_failure, read_failure
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.schemas import VECTORS
from tests.bench import NOW, Bench, WordEmbedder, contents
from tests.present import clock_at, embedding_with, present
from tests.transcripts import decisions

WIDTH = provider.DIMENSIONS
LATER = NOW + timedelta(hours=1)


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


def without_key(bench: Bench, tmp_path) -> Bench:
    plain = Bench(tmp_path / "plain", bench.projects, embedder_in_force)
    plain.backfill()
    return plain


def vectors_of(bench: Bench) -> dict[str, int]:
    lake = bench.store.lake
    return {model: lake.read(VECTORS, model).num_rows for model in lake.manifest.partitions("vectors")}


FAULTS = [
    "AuthenticationError", "RateLimitError", "Timeout", "APIConnectionError", "ServiceUnavailableError",
    "wrong dimensions", "partial answer", "empty vectors", "not numbers",
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS[:1] + FAULTS[5:7])
def test_a_key_that_fails_gives_what_no_key_gives(bench, service, tmp_path, fault):
    service.fault = fault
    report = bench.backfill()
    assert contents(bench.home) == contents(without_key(bench, tmp_path).home)
    [row] = [row for row in report.stages if row.stage == "embed"]
    assert "in the place of voyage-3.5-lite" in row.note and "pa-secret" not in row.note
    assert list(vectors_of(bench)) == [Local.model]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_way_to_fail_is_no_answer(service, fault):
    service.fault = fault
    with pytest.raises(ModelUnavailable) as raised:
        provider.connect("key").embed(["one", "two"])
    assert "pa-secret" not in str(raised.value)


def test_a_service_that_fails_midway_leaves_no_mixture(bench, service, tmp_path, monkeypatch):
    monkeypatch.setattr(provider, "BATCH_TEXTS", 2)
    service.fault, service.fails_from = "RateLimitError", 1
    bench.backfill()
    assert contents(bench.home) == contents(without_key(bench, tmp_path).home)


def test_the_next_run_does_not_wait_for_it_and_a_later_one_fills_in(bench, service):
    service.fault = "Timeout"
    bench.backfill()
    asked = service.asked
    bench.run(now=NOW + timedelta(minutes=1))
    assert service.asked == asked and read_failure(bench.home).model == provider.MODEL
    service.fault = ""
    report = bench.run(now=LATER)
    assert read_failure(bench.home) is None
    assert [row.note for row in report.stages if row.stage == "embed"] == [provider.MODEL]
    counts = vectors_of(bench)
    assert counts[provider.MODEL] == counts[Local.model] > 0
    rows = bench.store.tables.open_index(bench.store.tables.scopes()[:1], "memories")
    assert rows.search_vector(np.ones(WIDTH, np.float32), 1)["vector"].type.list_size == WIDTH


def test_with_nothing_new_a_probe_says_whether_it_answers_again(bench, service):
    bench.backfill()
    service.fault = "Timeout"
    with clock_at(NOW):
        model_for("levels", bench.context, bench.store, bench.store.tables)
    assert read_failure(bench.home) is not None
    bench.run(now=LATER)  # still failing: found out by the probe
    assert read_failure(bench.home).failed_at == LATER
    service.fault = ""
    bench.run(now=LATER + timedelta(hours=1))
    assert read_failure(bench.home) is None


def test_a_question_it_does_not_answer_is_compared_with_the_local_vectors(bench, service):
    bench.backfill()
    assert vectors_of(bench)[Local.model] > 0  # kept beside the hosted ones for this day
    service.fault = "Timeout"
    embedder, tables = model_for("millimetres", bench.context, bench.store, bench.store.tables)
    assert embedder.model == Local.model
    asked, scopes = service.asked, bench.store.tables.scopes()
    question = "whole millimetres because floats drift"
    policy = read_policy(bench.home)

    def answers(tables, embedder):
        found = search_store(tables, question, scopes=scopes, policy=policy, embedder=embedder, limit=5)
        return [(result.id, pytest.approx(result.score, abs=0.01)) for result in found]

    plain = Bench(bench.home.parent / "plain", bench.projects, embedder_in_force)
    plain.backfill()
    plain_tables, scopes = plain.store.tables, plain.store.tables.scopes()
    assert answers(tables, embedder) == answers(plain_tables, Local())
    again = model_for(question, bench.context, bench.store, bench.store.tables)
    assert again[0].model == Local.model and service.asked == asked  # noted: nobody waits a second time


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
