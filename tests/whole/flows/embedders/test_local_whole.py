"""The local embedder is the model it says it is, and says what to do when it is not there."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cortex.flows.embedders import local
from cortex.flows.embedders.local import LocalEmbedder
from tests.process.flows.embedders.test_local import embedder  # noqa: F401


def test_vectors_are_unit_length_float32_of_the_declared_dimensions(embedder: LocalEmbedder) -> None:
    vectors = embedder.embed(["a reef", "", "word " * 2_000])
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_looking_rows_up_first_changes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Which tide gauge?", "潮位 — measured at 04:10 UTC, in `tide_gauge.py`"]
    rewritten = local.load().embed(texts[:1], as_query=True), local.load().embed(texts)
    monkeypatch.setattr(local, "with_rows_taken_first", lambda network, table: network)
    as_it_is = local.load().embed(texts[:1], as_query=True), local.load().embed(texts)
    assert all(np.array_equal(*pair) for pair in zip(rewritten, as_it_is, strict=True))


def test_the_runtime_reports_nothing_and_leaves_nothing_in_the_home(tmp_path: Path) -> None:
    watched = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    words = "from cortex.flows.embedders import local; local.load().embed(['a tide gauge'])"
    # A CI variable would switch the runtime's reports off by itself, so the environment is bare.
    subprocess.run([sys.executable, "-c", words], env=watched, check=True, cwd=tmp_path)
    assert list(tmp_path.rglob("*")) == []
