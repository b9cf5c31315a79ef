"""Commands, called as a shell does."""

from tests.bench import bench, sample_store, samples
from tests.shell import _words_for_a_model, cortex

__all__ = ["_words_for_a_model", "bench", "cortex", "sample_store", "samples"]
