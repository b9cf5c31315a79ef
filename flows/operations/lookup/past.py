"""The store as it was on an earlier day."""

from collections.abc import Sequence
from datetime import UTC, datetime

from cortex.flows.context.context import Context
from cortex.flows.engines.runs import looking
from cortex.flows.past.as_of import as_of
from cortex.flows.run.run import Run
from cortex.transforms.errors import UsageError


def store_as_of(
    context: Context, date: str, scopes: Sequence[str] | None = None, *, searchable: bool = False
) -> Run:
    """
    Return the store as it was at the end of a UTC day, `date` as `2026-09-14`; default: every scope.

    Raises UsageError for what is not such a date, and for days to come.
    """
    try:
        day = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"Not a date: '{date}'.", "Use YYYY-MM-DD: --as-of 2026-09-14") from error
    run = looking(context)
    if day > run.day:
        raise UsageError(f"{date} is in the future.", "Give today or an earlier day.")
    return as_of(run, day, run.readings.scopes() if scopes is None else scopes, searchable=searchable)
