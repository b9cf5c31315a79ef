"""How many examples a property is tried on, how many cases; and tables of cases that make one test."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings

# `make test-all` and CI's slow tests set it. An example of ageing or linking takes about 10 ms of queries.
IS_FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"

# `make test-all` sets it: all cases of tests that are marked `spread`, of which the slow tests take a few.
HAS_EVERY_CASE = os.environ.get("EVERY_CASE") == "1"

# What a property without a number of its own is tried on; 100 is Hypothesis' own.
# No deadline and no check of slowness: both count wall time, and other work is done beside the tests.
for _profile, _count in (("quick", 10), ("full", 100)):
    settings.register_profile(
        _profile, max_examples=_count, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


def examples(count: int) -> int:
    """Return `count`, or in the quick run a tenth of it."""
    return count if IS_FULL else max(5, count // 10)


def cases(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """
    Try a test on each row, as `pytest.mark.parametrize` does but in one test: a test a row takes 7 ms.

    For tests that leave nothing behind. All rows are tried; the first error names each that is wrong.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    values = [
        row.values if hasattr(row, "marks") else row if len(keys) > 1 else (row,)  # pytest.param has marks
        for row in rows
    ]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def on_each(**fixtures: Any) -> None:
            errors = []
            for row in values:
                try:
                    test(**dict(zip(keys, row, strict=True)), **fixtures)
                except Exception as error:  # noqa: BLE001  (the rows behind it are tried too)
                    errors.append((row, error))
            if errors:
                errors[0][1].add_note(f"wrong: {[row for row, _ in errors]}")
                raise errors[0][1]

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in keys]
        on_each.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return on_each

    return decorate
