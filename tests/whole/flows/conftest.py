"""Whole runs on a scratch store."""

from tests.bench import _words_for_a_model, at_noon, bench, in_kelp, other

__all__ = ["_words_for_a_model", "at_noon", "bench", "in_kelp", "other"]
