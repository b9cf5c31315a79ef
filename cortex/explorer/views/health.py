"""Whether all is well: how much of Cortex is at work, a check of each thing it rests on, what waits."""

from dataclasses import asdict

from cortex.explorer.page import Page, ViewRequest
from cortex.flows import operations


def show_health(request: ViewRequest) -> Page:
    """Show the tier, the checks, and the state of the store."""
    context = request.context
    examination = operations.doctor.examine(context.home, lambda: context)
    status = operations.status.read_status(context)
    data = {
        "is_sound": examination.is_sound,
        "tier": examination.tier,
        "checks": examination.checks,
        "status": {**asdict(status), "background": asdict(status.background)},
    }
    extra = {"store": status, "outcome": status.background.outcome if status.background.started_at else ""}
    return Page("health.html", "Health", data, extra)
