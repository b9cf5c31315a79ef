"""The hosted embedder asks for the right vectors and never lets a key or a library's error out."""

import json
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from cortex.flows.embedders import embedder_for, voyage
from cortex.flows.embedders.voyage import BATCH_TEXTS, DIMENSIONS, VoyageEmbedder
from cortex.transforms.errors import ModelUnavailable


def answering(asked: list[dict[str, Any]]) -> Any:
    """Return a request function that notes what it is asked and gives each text a vector of its length."""

    def request(texts: Sequence[str], **chosen: Any) -> SimpleNamespace:
        asked.append({"texts": list(texts), **chosen})
        return SimpleNamespace(embeddings=[[float(len(text))] + [1.0] * (DIMENSIONS - 1) for text in texts])

    return request


def test_prose_and_questions_are_asked_for_as_such() -> None:
    asked: list[dict[str, Any]] = []
    embedder = VoyageEmbedder(answering(asked))
    embedder.embed(["a fact"])
    embedder.embed(["a question"], as_query=True)
    assert [(call["model"], call["input_type"]) for call in asked] == [
        ("voyage-3.5-lite", "document"),
        ("voyage-3.5-lite", "query"),
    ]


def test_long_lists_go_in_batches_and_keep_their_order() -> None:
    asked: list[dict[str, Any]] = []
    texts = ["x" * (number + 1) for number in range(BATCH_TEXTS + 5)]
    vectors = VoyageEmbedder(answering(asked)).embed(texts)
    assert [len(call["texts"]) for call in asked] == [BATCH_TEXTS, 5]
    assert np.all(np.diff(vectors[:, 0]) > 0)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_nothing_is_asked_for_no_texts() -> None:
    asked: list[dict[str, Any]] = []
    assert VoyageEmbedder(answering(asked)).embed([]).shape == (0, DIMENSIONS)
    assert asked == []


def test_a_failing_service_is_unavailable_and_its_message_is_kept_back() -> None:
    def refusing(*_: Any, **__: Any) -> None:
        raise RuntimeError("invalid key pa-secret")

    with pytest.raises(ModelUnavailable) as raised:
        VoyageEmbedder(refusing).embed(["a fact"])
    assert raised.value.retryable
    assert "pa-secret" not in str(raised.value)


def test_an_answer_of_another_shape_is_refused() -> None:
    with pytest.raises(ModelUnavailable, match="shape"):
        VoyageEmbedder(lambda texts, **_: SimpleNamespace(embeddings=[[1.0, 2.0]])).embed(["a fact"])


def test_a_key_without_the_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "voyageai.client", None)
    with pytest.raises(ModelUnavailable, match=r"\.\[voyage\]"):
        embedder_for("a key")


def test_the_key_goes_to_the_library_which_does_the_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []

    def client(**chosen: Any) -> SimpleNamespace:
        made.append(chosen)
        return SimpleNamespace(embed=answering([]))

    monkeypatch.setitem(sys.modules, "voyageai.client", SimpleNamespace(Client=client))
    assert embedder_for("a key").dimensions == DIMENSIONS
    assert made == [
        {"api_key": "a key", "max_retries": voyage.RETRIES, "timeout": voyage.TIMEOUT_S},
        {"api_key": "a key", "max_retries": voyage.QUESTION_RETRIES, "timeout": voyage.QUESTION_TIMEOUT_S},
    ]


def test_no_secret_leaves_the_machine_whoever_asks() -> None:
    asked: list[dict[str, Any]] = []
    embedder = VoyageEmbedder(answering(asked))
    embedder.embed(["why does ghp_" + "a1B2" * 9 + " fail?"], as_query=True)
    assert asked[0]["texts"] == ["why does [REDACTED:github-token] fail?"]


class Service(BaseHTTPRequestHandler):
    """Voyage AI on loopback: a vector for each text; to `refuse` a refusal that quotes the key."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        """Answer one request for vectors."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append({**body, "path": self.path, "authorization": self.headers["Authorization"]})
        is_refused = "refuse" in body["input"]
        rows = [
            {"object": "embedding", "embedding": [float(len(text))] + [1.0] * (DIMENSIONS - 1), "index": at}
            for at, text in enumerate(body["input"])
        ]
        answer: dict[str, Any] = {"object": "list", "data": rows, "usage": {"total_tokens": 7}}
        if is_refused:
            answer = {"detail": f"refused: {self.headers['Authorization']}"}
        content = json.dumps(answer).encode()
        self.send_response(401 if is_refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_the_librarys_own_client_is_understood_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    voyageai = pytest.importorskip("voyageai", reason="the library 'voyageai' is not installed")
    import requests

    Service.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    class Loopback(requests.Session):
        def request(self, method: Any, url: Any, *words: Any, **chosen: Any) -> requests.Response:
            here = f"http://127.0.0.1:{server.server_port}{urlsplit(url).path}"
            return super().request(method, here, *words, **chosen)

    monkeypatch.setattr(voyageai, "requestssession", Loopback)
    try:
        embedder = voyage.connect("pa-secret")
        vectors = embedder.embed(["a fact", "a longer fact"])
        assert vectors.shape == (2, DIMENSIONS) and vectors[1, 0] > vectors[0, 0]
        embedder.embed(["a question"], as_query=True)
        first, second = Service.asked
        assert first["authorization"] == "Bearer pa-secret" and first["path"].endswith("/embeddings")
        assert (first["model"], first["output_dimension"]) == (voyage.MODEL, DIMENSIONS)
        assert (first["input_type"], second["input_type"]) == ("document", "query")
        with pytest.raises(ModelUnavailable) as raised:
            embedder.embed(["refuse"])
        assert "pa-secret" not in str(raised.value)
    finally:
        server.shutdown()
        server.server_close()
