"""How many examples a property is tried on: a fifth in the quick run, all of them with the slow tests."""

import os

from hypothesis import settings

# `make test-all` and CI's slow tests set it. An example of ageing or linking takes about 10 ms of queries.
IS_FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"

# What a property without a number of its own is tried on; 100 is Hypothesis' own.
settings.register_profile("quick", max_examples=20)
settings.register_profile("full", max_examples=100)


def examples(count: int) -> int:
    """Return `count`, or in the quick run a fifth of it."""
    return count if IS_FULL else max(5, count // 5)
