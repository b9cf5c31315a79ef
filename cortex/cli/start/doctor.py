"""The command `doctor`: how much of Cortex is at work here, and whether all that it needs is in place."""

from __future__ import annotations

from dataclasses import asdict

from cortex.cli.answer import Answer, command, current_context, current_home
from cortex.cli.terminal import Listing


@command("doctor", "Check that everything needed is in place.", place=80, takes_context=False)
def doctor() -> Answer:
    """Show which parts of Cortex work here, check everything it needs, and say what to do next."""
    from cortex.flows.operations.care import doctor

    examination = doctor.examine(current_home(), current_context)
    tier, checks = examination.tier, examination.checks
    rows = [[check.mark, check.check, check.finding] for check in checks]
    table = Listing("Checks", ["", "check", "finding"], rows)
    return Answer(
        {"tier": asdict(tier), "checks": [asdict(check) for check in checks]},
        [f"Tier: {tier.name}. {tier.why}", f"Next: {tier.next}\n", table],
        exit_code=0 if examination.is_sound else 1,
    )
