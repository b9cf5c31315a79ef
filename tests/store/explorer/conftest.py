"""A browser at the explorer."""

from tests.bench import sample_store
from tests.browsing import browser, memory, reader

__all__ = ["browser", "memory", "reader", "sample_store"]
