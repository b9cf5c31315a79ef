"""Whole runs on a scratch store."""

from tests.bench import _words_for_a_model, bench, other

__all__ = ["_words_for_a_model", "bench", "other"]
