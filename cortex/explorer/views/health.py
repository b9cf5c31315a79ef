"""Whether all is well: how much of Cortex is at work, a check of each thing it rests on, what waits."""

from dataclasses import asdict

from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.care import doctor
from cortex.flows.operations.care import status as status_operation
from cortex.flows.operations.care.status import Status
from cortex.transforms.errors import CortexError


def show_health(request: ViewRequest) -> Page:
    """Show the tier, the checks, and the state of the store."""
    context = request.context
    # A page that is merely looked at sends nothing and costs nothing.
    examination = doctor.examine(context.home, lambda: context, asks_models=False)
    status = _status(request)
    background = status.background if status else None
    data = {
        "is_sound": examination.is_sound,
        "tier": examination.tier,
        "checks": examination.checks,
        "status": {**asdict(status), "background": asdict(status.background)} if status else None,
    }
    extra = {"store": status, "outcome": background.outcome if background and background.started_at else ""}
    return Page("health.html", "Health", data, extra)


def _status(request: ViewRequest) -> Status | None:
    """Return the state of the store; None if it cannot be read, which the checks say more about."""
    try:
        return status_operation.read_status(request.context)
    except CortexError:
        return None
