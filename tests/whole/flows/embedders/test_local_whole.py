"""The local embedder is the model it says it is, and says what to do when it is not there."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from cortex.flows.embedders import local
from cortex.flows.embedders.local import LocalEmbedder
from tests.process.flows.embedders.test_local import embedder  # noqa: F401


def test_vectors_are_unit_length_float32_of_the_declared_dimensions(embedder: LocalEmbedder) -> None:
    vectors = embedder.embed(["a reef", "", "word " * 2_000])
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_few_steps_give_the_vectors_of_the_network_as_the_package_has_it(embedder: LocalEmbedder) -> None:
    import onnxruntime

    texts = [
        "",
        "Which tide gauge?",
        "潮位 — measured at 04:10 UTC, in `tide_gauge.py`",
        "reads again " * 300,
    ]
    whole = onnxruntime.InferenceSession(local._model_path(), providers=["CPUExecutionProvider"])
    for text, vector in zip(texts, embedder.embed(texts), strict=True):
        ids = np.array([local._tokenizer().encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        summed = whole.run(None, inputs)[0][0].sum(axis=0)
        assert np.allclose(vector, summed / np.linalg.norm(summed), atol=1e-6)
    assert np.allclose(local.load().embed(texts[1:2], as_query=True), embedder.embed(texts[1:2]), atol=1e-6)


def test_the_runtime_reports_nothing_and_leaves_nothing_in_the_home(tmp_path: Path) -> None:
    watched = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    words = "from cortex.flows.embedders import local; local.load().embed(['a tide gauge'])"
    # A CI variable would switch the runtime's reports off by itself, so the environment is bare.
    subprocess.run([sys.executable, "-c", words], env=watched, check=True, cwd=tmp_path)
    assert list(tmp_path.rglob("*")) == []
