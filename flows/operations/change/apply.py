"""Puts what was journaled into effect now, unless another run is writing or a loss waits for a person."""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.flows.context.context import Context
from cortex.flows.engines.engines import run_plain
from cortex.flows.engines.runs import opened
from cortex.flows.stages.stage import Stage
from cortex.transforms.errors import LossRefused, StoreBusy


@dataclass(frozen=True)
class Applied:
    """Whether a change is in effect, and `warning`: what a person should know of that, "" for nothing."""

    is_in_effect: bool
    warning: str = ""

    @property
    def warnings(self) -> list[str]:
        """Return the warning as a list of one, or none."""
        return [self.warning] if self.warning else []


WAITING = Applied(False, "Another run is writing; this takes effect with the next one.")


def apply_now(context: Context, stages: Sequence[Stage]) -> Applied:
    """Run `stages` now; a change that cannot act yet is kept and acts with a later run."""
    run = None
    try:
        with opened("remember", context) as run:
            run_plain(stages, run)
    except StoreBusy:
        return WAITING
    except LossRefused as error:
        if run is not None and run.outcome.refused is error:  # only briefs were held back
            return Applied(True, f"In effect, but not in every brief yet: {error}")
        return Applied(False, f"Kept; takes effect once the loss is decided: {error}")
    return Applied(True)
