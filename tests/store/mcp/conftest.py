"""The server on a test"s store, and a client of it."""

from tests.bench import sample_store, samples
from tests.protocol import assistant, learner

__all__ = ["assistant", "learner", "sample_store", "samples"]
