"""The local embedder is the model it says it is, and says what to do when it is not there."""

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

from cortex.flows.embedders import embedder_for, local
from cortex.flows.embedders.local import LocalEmbedder
from cortex.transforms.errors import ModelUnavailable


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return local.load()


def test_the_model_gives_the_published_similarities(embedder: LocalEmbedder) -> None:
    texts = [
        "That is a happy person",
        "That is a very happy person",
        "That is a happy dog",
        "Today is a sunny day",
    ]
    first, *others = embedder.embed(texts)
    # .943, .695 and .257 are published for the model before its weights were cut to 8 bits.
    assert np.allclose([first @ other for other in others], [0.943, 0.695, 0.257], atol=0.01)


def test_no_texts_make_no_vectors(embedder: LocalEmbedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_a_text_has_the_same_vector_among_any_others(embedder: LocalEmbedder) -> None:
    texts = [f"tide gauge {number} " + "reads again " * (number % 7) for number in range(40)]
    together = embedder.embed(texts)
    assert np.array_equal(together[:5], np.vstack([embedder.embed([text]) for text in texts[:5]]))


def test_without_a_key_the_local_model_is_chosen() -> None:
    assert embedder_for(None).model == "all-MiniLM-L6-v2"


def test_a_missing_package_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(ModelUnavailable, match="is not installed") as raised:
        local.load()
    assert "pip install" in raised.value.next_step


def test_another_file_than_expected_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"another network")
    monkeypatch.setattr(local, "_model_path", lambda: other)
    with pytest.raises(ModelUnavailable, match="another file than expected"):
        local.load()


def test_other_bytes_of_the_same_size_are_refused_before_they_are_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(bytes(local.MODEL_BYTES))
    monkeypatch.setattr(local, "_model_path", lambda: other)
    embedder = local.load()
    for as_query in (True, False):
        with pytest.raises(ModelUnavailable, match="another file than expected"):
            embedder.embed(["a tide gauge"], as_query=as_query)


def test_an_unreadable_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local, "_model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        local.load()
